use super::*;

fn costs(cpu: f64, device: f64) -> Costs {
    Costs::new([cpu, device], (1000.0 * cpu) as u64)
}

fn all(queues: &mut Queues<u32>, kind: Processor, now: f64) -> Vec<u32> {
    let next = || queues.take(kind, now).inspect(|_| queues.done(kind));
    std::iter::from_fn(next).collect()
}

#[test]
fn each_goes_to_its_kind() {
    let mut queues = Queues::new(Policy::Best, 0.5, 1, 1);
    for (item, costs) in [(1, costs(1.0, 2.0)), (2, costs(3.0, 2.0)), (3, costs(1.0, 1.5))] {
        queues.push(item, costs, 0.0);
    }
    assert_eq!(all(&mut queues, Processor::Cpu, 1.0), [1, 3]);
    assert_eq!(all(&mut queues, Processor::Device, 1.0), [2]);

    let by_blocks = Policy::ByBlocks { threshold: 2000, below: Processor::Device };
    let mut queues = Queues::new(by_blocks, 0.5, 1, 1);
    queues.push(1, costs(1.0, 1.0), 0.0);
    queues.push(2, costs(2.0, 1.0), 0.0);
    assert_eq!(all(&mut queues, Processor::Device, 1.0), [1]);
    assert_eq!(all(&mut queues, Processor::Cpu, 1.0), [2]);

    let mut queues = Queues::new(Policy::Halves, 0.5, 1, 1);
    for item in 0..1000 {
        queues.push(item, costs(1.0, 1.0), 0.0);
    }
    let here = all(&mut queues, Processor::Cpu, 1.0).len();
    assert!((400..600).contains(&here), "{here}");
    assert_eq!(all(&mut queues, Processor::Device, 1.0).len(), 1000 - here);
}

#[test]
fn one_after_the_other_is_one_at_a_time_in_order() {
    let mut queues = Queues::new(Policy::BestSerial, 0.5, 4, 1);
    for (item, costs) in [(1, costs(2.0, 1.0)), (2, costs(1.0, 2.0)), (3, costs(1.0, 2.0))] {
        queues.push(item, costs, f64::from(item));
    }
    assert_eq!(queues.take(Processor::Cpu, 5.0), None);
    assert_eq!(queues.take(Processor::Device, 5.0), Some(1));
    assert_eq!(queues.take(Processor::Cpu, 5.0), None);
    queues.done(Processor::Device);
    assert_eq!(queues.take(Processor::Cpu, 5.0), Some(2));
    assert_eq!(queues.take(Processor::Cpu, 5.0), None);
    queues.done(Processor::Cpu);
    assert_eq!(queues.take(Processor::Cpu, 5.0), Some(3));
}

#[test]
fn who_is_idle_takes_the_oldest_of_either_and_then_steals() {
    let mut queues = Queues::new(Policy::Groups, 0.5, 1, 1);
    queues.push(1, costs(0.011, 0.010), 0.0);
    queues.push(2, costs(0.010, 0.011), 0.01);
    for item in 3..7 {
        queues.push(item, costs(0.030, 0.010 + f64::from(item) / 1000.0), 0.02);
    }
    // Either, oldest first; then what it loses least by, as long as the other is busy for longer.
    assert_eq!(queues.take(Processor::Cpu, 0.05), Some(1));
    assert_eq!(queues.take(Processor::Cpu, 0.05), Some(2));
    assert_eq!(queues.take(Processor::Cpu, 0.05), Some(6));
    assert_eq!(queues.take(Processor::Cpu, 0.05), Some(5));
    assert_eq!(
        queues.take(Processor::Cpu, 0.05),
        None,
        "0.027 s of work wait, and it would take 0.03"
    );
    assert_eq!(all(&mut queues, Processor::Device, 0.05), [3, 4]);
}

#[test]
fn what_may_come_late_is_left_to_the_other() {
    let mut queues = Queues::new(Policy::Groups, 0.1, 2, 1);
    // One in a hundred takes a thread five times what is predicted, which would be too late.
    let uncertain = |cpu: f64, device: f64| Costs { tails: [5.0, 1.1], ..costs(cpu, device) };
    assert_eq!(queues.push(1, uncertain(0.03, 0.09), 0.0), Some(Processor::Device));
    assert_eq!(queues.push(2, uncertain(0.01, 0.09), 0.0), Some(Processor::Cpu));
    // The device would come to it after 0.09 s.
    assert_eq!(queues.push(3, uncertain(0.018, 0.02), 0.0), Some(Processor::Cpu));
    assert_eq!(queues.take(Processor::Cpu, 0.0001), Some(2));
    assert_eq!(queues.take(Processor::Cpu, 0.0001), Some(3));
    assert_eq!(queues.take(Processor::Cpu, 0.0001), None, "nobody steals what he may do too late");
    assert_eq!(queues.take(Processor::Device, 0.0001), Some(1));
    // Of those for either each takes what he does in time, and what nobody does goes as if there
    // were no deadline.
    let mut queues = Queues::new(Policy::Groups, 0.1, 2, 1);
    assert_eq!(queues.push(1, uncertain(0.019, 0.019), 0.0), None);
    assert_eq!(queues.push(2, uncertain(0.002, 0.002), 0.01), None);
    assert_eq!(queues.take(Processor::Cpu, 0.06), Some(2));
    assert_eq!(queues.take(Processor::Cpu, 0.06), None);
    assert_eq!(queues.take(Processor::Cpu, 0.09), Some(1));
}

#[test]
fn short_ones_go_first_until_others_are_urgent() {
    let mut queues = Queues::new(Policy::Groups, 0.5, 1, 1);
    queues.push(1, costs(0.1, 1.0), 0.0);
    queues.push(2, costs(0.001, 1.0), 0.01);
    assert_eq!(queues.take(Processor::Cpu, 0.02), Some(2));
    queues.push(3, costs(0.0001, 1.0), 0.1);
    assert_eq!(queues.take(Processor::Cpu, 0.36), Some(1));
    queues.push(4, costs(0.0105, 0.0100), 0.4);
    // It is urgent, and its better processor is the device.
    assert_eq!(queues.take(Processor::Device, 0.76), Some(4));
    assert_eq!(queues.take(Processor::Cpu, 0.76), Some(3));
    assert!(queues.is_empty());
}

#[test]
fn law_nothing_is_lost_or_done_twice() {
    for policy in
        ["cpu", "gpu", "sd", "lbd:500", "lbd-reverse:500", "best", "best-serial", "ding09"]
    {
        let mut queues = Queues::new(policy.parse().unwrap(), 0.05, 2, 1);
        for item in 0..300u32 {
            let cpu = f64::from(item * 7919 % 1000 + 1) / 1000.0;
            let device = f64::from(item * 104_729 % 1000 + 1) / 1000.0;
            queues.push(item, costs(cpu, device), f64::from(item) / 1000.0);
        }
        let mut seen = Vec::new();
        let mut now = 0.3;
        while !queues.is_empty() {
            assert!(now < 60.0, "{policy} comes to no end");
            for kind in [Processor::Cpu, Processor::Cpu, Processor::Device] {
                if let Some(item) = queues.take(kind, now) {
                    seen.push(item);
                    queues.done(kind);
                }
            }
            now += 0.001;
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..300).collect::<Vec<_>>(), "{policy}");
    }
}

#[test]
fn a_kind_that_is_lost_leaves_all_to_the_other() {
    for policy in ["gpu", "sd", "best", "ding09"] {
        let mut queues = Queues::new(policy.parse().unwrap(), 50.0, 1, 1);
        for item in 0..10 {
            queues.push(item, costs(2.0, 1.0), 0.0);
        }
        let taken = queues.take(Processor::Device, 1.0).unwrap();
        queues.lose(Processor::Device);
        assert_eq!(queues.take(Processor::Device, 1.0), None);
        queues.push(10, costs(2.0, 1.0), 1.0);
        queues.done(Processor::Device);
        queues.give_back(taken, costs(2.0, 1.0), 0.0, Processor::Device);
        // What has waited longest goes first.
        let found = all(&mut queues, Processor::Cpu, 2.0);
        assert_eq!((found[0], found.len()), (taken, 11), "{policy}");
        queues.regain(Processor::Device);
        for item in 11..40 {
            queues.push(item, costs(2.0, 0.1), 2.0);
        }
        assert!(queues.take(Processor::Device, 3.0).is_some(), "{policy}");
    }
}

#[test]
fn a_device_gets_no_more_than_it_does_soon() {
    let mut queues = Queues::new(Policy::Only(Processor::Device), 0.8, 1, 1);
    for item in 0..10 {
        queues.push(item, costs(1.0, 0.06), 0.0);
    }
    // A tenth of a second is an eighth of the deadline.
    let mut taken = || queues.take(Processor::Device, 0.0).is_some();
    assert_eq!((0..4).map(|_| taken()).collect::<Vec<_>>(), [true, true, false, false]);
    assert_eq!(queues.take_late(0.7), None);
    assert_eq!(queues.take_late(0.9), Some(2));
    // A short deadline leaves room for a full device: 8 of 20 ms.
    let mut queues = Queues::new(Policy::Only(Processor::Device), 0.02, 1, 1);
    (0..30).for_each(|item| _ = queues.push(item, costs(1.0, 0.001), 0.0));
    let taken = std::iter::from_fn(|| queues.take(Processor::Device, 0.0)).count();
    assert!((8..=9).contains(&taken), "{taken}");
}
