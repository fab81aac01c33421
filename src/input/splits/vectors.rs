//! Whether the input is learned vectors, and what their weights are multiplied by.

use super::InputPlan;
use crate::crew::lock;
use crate::input::Format;
use crate::input::document::{Document, DocumentSink, PieceView, Skip};
use crate::input::error::{InputError, io_error};
use crate::input::formats::jsonl::JsonlParser;
use crate::input::formats::jsonl::vector::ImpactFactor;
use crate::input::guess::{read_head, text_of, text_of_file};
use crate::input::streams::pipe::Pipe;
use std::fs::File;
use std::io;

/// What the weights at the beginning of a file say.
#[derive(Default)]
struct FirstWeights {
    vectors: u64,
    has_fractions: bool,
}

impl DocumentSink for FirstWeights {
    fn document(&mut self, _: Document<'_>) {
        self.vectors += 1;
    }

    fn skipped(&mut self, _: usize, _: u64, _: usize, reason: Skip) {
        self.has_fractions |= reason == Skip::Fraction;
    }
}

impl InputPlan {
    /// Whether the inputs are vectors.
    ///
    /// # Errors
    /// If some are and others are not.
    pub(crate) fn has_vectors(&self) -> Result<bool, InputError> {
        let are = |input: &usize| self.inputs.format(*input) == Format::Vectors;
        let first = (0..self.inputs.len()).find(are);
        let other = (0..self.inputs.len()).find(|input| !are(input));
        match (first, other) {
            (Some(vectors), Some(other)) => {
                let vectors = self.path(vectors as u32);
                Err(InputError::VectorsAndTexts { vectors, other: self.path(other as u32) })
            }
            (first, _) => Ok(first.is_some()),
        }
    }

    /// Multiplies the weights of vectors by the factor that is given, or else by one that the first
    /// of them tell: 1 if they are whole numbers. Returns it.
    ///
    /// # Errors
    /// If what tells it cannot be read.
    pub(crate) fn weigh(&mut self, given: Option<f64>) -> Result<f64, InputError> {
        let factor = match given {
            Some(given) => ImpactFactor::given(given),
            None => self.factor_of_first()?,
        };
        self.factor = Some(factor);
        Ok(factor.factor)
    }

    fn factor_of_first(&mut self) -> Result<ImpactFactor, InputError> {
        let mut found = FirstWeights::default();
        let mut parser = JsonlParser::of_vectors(ImpactFactor::OF_WHOLE);
        for input in 0..self.inputs.len() as u32 {
            parser.parse(PieceView::whole(&self.head(input)?), &mut found);
            if found.has_fractions {
                return Ok(ImpactFactor::given(ImpactFactor::OF_FRACTIONS));
            }
            if found.vectors > 0 {
                break;
            }
        }
        Ok(ImpactFactor::OF_WHOLE)
    }

    /// The first bytes of an input. What can be read only once is open then.
    fn head(&mut self, input: u32) -> Result<Vec<u8>, InputError> {
        let asked = self.inputs.reading(input as usize).encoding;
        let shown = self.path(input);
        let path = self.inputs.path(input as usize);
        if let Some(path) = path.as_ref().filter(|path| path.is_file()) {
            return text_of_file(path, asked);
        }
        let open = || match path {
            Some(path) => {
                let mut file = File::open(path)?;
                let head = read_head(&mut file)?;
                Ok((head.clone(), Pipe::new(head, || Ok(file))?))
            }
            None => {
                let head = read_head(io::stdin())?;
                Ok((head.clone(), Pipe::new(head, || Ok(io::stdin()))?))
            }
        };
        let (head, pipe) = open().map_err(|e| io_error(shown.clone(), e))?;
        lock(&self.pipes).insert(input, pipe);
        text_of(&shown, &head, asked)
    }
}
