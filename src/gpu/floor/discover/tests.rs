use super::*;
use cudarc::driver::DriverError;

const DRIVER: Version = Version { major: 13, minor: 0 };

fn cuda(code: sys::CUresult) -> Cuda {
    Cuda(DriverError(code))
}

fn info(ordinal: usize, architecture: u32) -> DeviceInfo {
    DeviceInfo {
        ordinal,
        name: "a device".into(),
        architecture: Architecture(architecture),
        memory_bytes: 1 << 30,
        multiprocessors: 8,
    }
}

fn facts(devices: &[u32]) -> Facts {
    let devices = devices.iter().enumerate().map(|(n, &arch)| info(n, arch)).collect();
    Facts {
        driver: Some(Ok(DRIVER)),
        compiler: Ok(Compiler::pretended(Version { major: 13, minor: 0 }, &[75, 80, 90])),
        devices: Ok(devices),
    }
}

#[test]
fn devices_that_can_be_compiled_for_are_used() {
    let found = Discovery::judge(facts(&[90, 70, 80, 121]));
    let ordinals: Vec<_> = found.usable().iter().map(|info| info.ordinal).collect();
    assert_eq!(ordinals, [0, 2]);
    assert_eq!(
        found.reasons(),
        [
            "GPU 1 (a device): its architecture is sm_70, and sm_75 is the least",
            "GPU 3 (a device): NVRTC 13.0 does not compile for sm_121",
        ]
    );
    assert!(found.missing.is_empty());
}

#[test]
fn every_reason_is_named() {
    let old = Version { major: 11, minor: 8 };
    let start = sys::CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    let none = || Err(NoCompiler::NoLibrary);
    let cases = [
        (Facts { driver: None, ..facts(&[]) }, vec![Missing::NoDriver]),
        (
            Facts { driver: None, compiler: none(), ..facts(&[]) },
            vec![Missing::NoDriver, NoCompiler::NoLibrary.into()],
        ),
        (
            Facts { driver: Some(Err(cuda(start))), ..facts(&[90]) },
            vec![Missing::Driver(cuda(start))],
        ),
        (Facts { devices: Err(cuda(start)), ..facts(&[]) }, vec![Missing::Driver(cuda(start))]),
        (
            Facts {
                driver: Some(Ok(old)),
                compiler: Err(NoCompiler::TooOld { found: old }),
                ..facts(&[90])
            },
            vec![Missing::DriverTooOld { found: old }, NoCompiler::TooOld { found: old }.into()],
        ),
        (facts(&[]), vec![Missing::NoDevice]),
        (Facts { compiler: none(), ..facts(&[90]) }, vec![NoCompiler::NoLibrary.into()]),
        (
            Facts {
                compiler: Ok(Compiler::pretended(Version { major: 14, minor: 0 }, &[90])),
                ..facts(&[90])
            },
            vec![Missing::CompilerTooNew {
                nvrtc: Version { major: 14, minor: 0 },
                driver: DRIVER,
            }],
        ),
    ];
    for (facts, missing) in cases {
        let found = Discovery::judge(facts.clone());
        assert_eq!(found.missing, missing, "{facts:?}");
        assert_eq!(found.usable(), [], "{facts:?}");
        assert_eq!(found.reasons().len(), missing.len());
        assert_eq!(found.choose(Gpus::Auto), Ok(Vec::new()));
        assert!(found.choose(Gpus::Number(1)).is_err());
    }
}

#[test]
fn a_job_gets_what_it_asks_for_or_an_error() {
    let found = Discovery::judge(facts(&[90, 90]));
    let count = |gpus| found.choose(gpus).map(|devices| devices.len());
    assert_eq!(count(Gpus::Auto), Ok(2));
    assert_eq!(count(Gpus::None), Ok(0));
    assert_eq!(count(Gpus::Number(1)), Ok(1));
    assert_eq!(count(Gpus::Number(2)), Ok(2));
    let error = found.choose(Gpus::Number(3)).unwrap_err();
    assert_eq!(error.to_string(), "gpus: 3 GPUs were asked for, and 2 can be used here");
    let error = Discovery::judge(facts(&[70])).choose(Gpus::Number(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "gpus: 1 GPUs were asked for, and 0 can be used here (GPU 0 (a device): its architecture is sm_70, and sm_75 is \
         the least)"
    );
}

#[test]
fn the_option_is_read() {
    for (text, gpus) in [
        ("auto", Some(Gpus::Auto)),
        ("none", Some(Gpus::None)),
        ("0", Some(Gpus::None)),
        ("2", Some(Gpus::Number(2))),
        ("two", None),
        ("-1", None),
        ("", None),
    ] {
        assert_eq!(text.parse().ok(), gpus, "{text}");
    }
}

/// Asking neither panics nor finds a device without a driver, on any machine.
#[test]
fn this_machine_can_be_asked() {
    let found = Discovery::of_machine();
    assert!(!found.usable().is_empty() || !found.reasons().is_empty());
    if !has_driver() {
        assert_eq!(found.missing.first(), Some(&Missing::NoDriver));
    }
}
