//! Describes an input of which no document has any text, for the message that says so.

use super::guess::HEAD_BYTES;
use super::splits::InputPlan;
use crate::input::Format;
use crate::input::formats::json_values;
use crate::input::streams::unpacked;
use std::io::Read;

impl InputPlan {
    pub(crate) fn what_is_there(&self) -> String {
        if self.inputs.is_empty() {
            return "there is no input".to_string();
        }
        let seen = match self.first_fields() {
            Some(fields) if !fields.is_empty() => format!(
                "its first record has the fields {}, and text is looked for in {}",
                fields.join(", "),
                self.inputs.reading(0).fields.wanted()
            ),
            _ => "if it is something else, its format has to be named".to_string(),
        };
        format!("{} was read as {}; {seen}", self.path(0), self.inputs.format(0))
    }

    /// The names of the fields of the first input's first record, where records have any.
    fn first_fields(&self) -> Option<Vec<String>> {
        let path = self.inputs.path(0)?;
        let format = self.inputs.format(0);
        let mut head = vec![0; HEAD_BYTES as usize];
        let mut stream = unpacked::Unpacked::open(&path).ok()?;
        let mut len = 0;
        while let Ok(n @ 1..) = stream.read(&mut head[len..]) {
            len += n;
        }
        head.truncate(len);
        if format == Format::Json {
            json_values::to_lines(&mut head);
        }
        if !matches!(format, Format::Json | Format::Jsonl) {
            return None;
        }
        let text = String::from_utf8_lossy(&head);
        let first = text.lines().find(|line| !line.trim().is_empty())?;
        let record: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(first).ok()?;
        Some(record.keys().cloned().collect())
    }
}
