//! Parameters of a model for spreading queries over workers, as users write them.

use super::engine::{HandedModels, Model};
use crate::query::searcher::Cutting;
use crate::settings::SettingError;
use std::time::Duration;

/// Default of [`Spreading::delta`].
pub(crate) const DELTA: usize = 5;

/// How long a worker of `fgqp` looks for work before it sleeps.
pub fn patience(spin_us: Option<u32>) -> Duration {
    Duration::from_micros(spin_us.unwrap_or(200).into())
}

/// Parameters that are left out have their defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spreading {
    /// Of `fgqp`: no new query is cut while more tasks are open.
    pub delta: Option<usize>,
    /// Of `fgqp`: queries with a lower estimate in microseconds are not cut.
    pub cut_us: Option<u32>,
    /// Of `fgqp`: microseconds that a worker without work looks for more before it sleeps.
    pub spin_us: Option<u32>,
    /// Of models that are handed in: all workers end a query before any of them begins the next.
    pub barrier: bool,
}

impl Spreading {
    /// The model of this name with these parameters, among all and those that are handed in;
    /// `inter` if no other has the name.
    ///
    /// # Errors
    /// If a parameter is not one of the model.
    pub fn model(&self, name: &str, handed: HandedModels) -> Result<Model, SettingError> {
        let Self { delta, cut_us, spin_us, barrier } = *self;
        let model = match name {
            "fgqp" => {
                let mut cutting = Cutting::default();
                if let Some(us) = cut_us {
                    cutting.least_ns = f64::from(us) * 1e3;
                }
                let delta = delta.unwrap_or(DELTA);
                let patience = patience(spin_us);
                Model::Fgqp { delta, cutting, patience }
            }
            _ => match handed.iter().find(|model| model.name() == name) {
                Some(&model) => Model::Handed { model, barrier },
                None => Model::Inter,
            },
        };
        let is_fgqp = matches!(model, Model::Fgqp { .. });
        let is_handed = matches!(model, Model::Handed { .. });
        let handed: Vec<&str> = handed.iter().map(|model| model.name()).collect();
        let of = |names: &str| format!("parallelism {names}");
        SettingError::check([
            ("delta", delta.is_some(), is_fgqp, of("fgqp")),
            ("cut-us", cut_us.is_some(), is_fgqp, of("fgqp")),
            ("spin-us", spin_us.is_some(), is_fgqp, of("fgqp")),
            ("barrier", barrier, is_handed, of(&handed.join(" or "))),
        ])?;
        Ok(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::engines::engine::whole::WholeEngines;
    use crate::query::engines::engine::{Engines, HandedModel, Wakers};
    use std::sync::Arc;

    struct Mine;

    impl HandedModel for Mine {
        fn name(&self) -> &'static str {
            "mine"
        }

        fn engines(&self, _: bool, _: &Arc<Wakers>) -> Box<dyn Engines> {
            Box::new(WholeEngines)
        }
    }

    #[test]
    fn every_model_has_its_name_and_its_parameters_alone() {
        for name in ["inter", "mine", "fgqp"] {
            assert_eq!(Spreading::default().model(name, &[&Mine]).unwrap().name(), name);
            let barrier = Spreading { barrier: true, ..Spreading::default() };
            assert_eq!(barrier.model(name, &[&Mine]).is_ok(), name == "mine", "{name}");
            let delta = Spreading { delta: Some(9), ..Spreading::default() };
            assert_eq!(delta.model(name, &[&Mine]).is_ok(), name == "fgqp", "{name}");
        }
        assert_eq!(Spreading::default().model("mine", &[]), Ok(Model::Inter));
        let misfit = Spreading { cut_us: Some(1), ..Spreading::default() }.model("inter", &[]);
        let misfit = misfit.unwrap_err();
        assert_eq!(misfit.to_string(), "cut-us goes with parallelism fgqp");
        assert_eq!(misfit.on_command_line(), "--cut-us goes with --parallelism fgqp");
    }
}
