//! FastTrack in a guest: what is behind is kept out of the foreground's way, and the guest is
//! left as it was.

use serde_json::Value;
use std::process::{Command, Stdio};

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn frontrow(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(arguments)
        .current_dir(CHECKOUT)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    output.stdout
}

#[test]
fn a_game_beside_an_installer_is_served_first_with_all_parts_of_fasttrack() {
    let result = frontrow(&[
        "lab",
        "run",
        "fasttrack",
        "--workload",
        "game",
        "--load",
        "reinstall",
        "--policy",
        "stock,fastt",
        "--seeds",
        "1",
        "--scale",
        "0.3",
        "--json",
    ]);
    let result: Value = serde_json::from_slice(&result).unwrap();
    let figure = |policy: &str, metric: &str| {
        let mut rows = result["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["policy"] == policy && row["metric"] == metric);
        row.unwrap_or_else(|| panic!("no {metric} under {policy}"))["value"]
            .as_f64()
            .unwrap()
    };
    // Virtual time: the same on every machine.
    let [stock_ms, fastt_ms] = ["stock", "fastt"].map(|it| figure(it, "response_mean_ms"));
    assert!(fastt_ms < 0.7 * stock_ms, "{fastt_ms} of {stock_ms} ms");
    assert!(figure("fastt", "background_mb_s") > 0.2 * figure("stock", "background_mb_s"));
}

/// `fg` on a running system: what it sets, what the scheduler makes of it, and the way back.
const SCRIPT: &str = r#"
cd /sys/fs/cgroup
echo "+memory +io" > cgroup.subtree_control
mkdir front behind
sh -c 'echo 0 > /sys/fs/cgroup/front/cgroup.procs; exec sleep 1000' &
sleep 1
frontrow fg set $! --behind /behind > /tmp/set
frontrow fg set $! --behind /behind 2> /tmp/again; echo "{ \"again\": $? }"
list=/sys/block/simflash0/queue/iosched
dispatched() { sed -n "s/^$1_dispatched //p" $list/stats; }
sh -c 'echo 0 > front/cgroup.procs; dd if=/dev/urandom of=/mnt/f bs=4k count=64 conv=fsync' 2> /dev/null
sh -c 'echo 0 > behind/cgroup.procs; dd if=/dev/urandom of=/mnt/b bs=4k count=64 conv=fsync' 2> /dev/null
echo "{ \"fg_write\": $(dispatched fg_write), \"bg_sync\": $(dispatched bg_sync) }"
frontrow fg status --json
frontrow fg release > /dev/null
echo "{ \"foreground\": \"$(cat $list/foreground)\", \"high\": \"$(cat behind/memory.high)\", \"low\": \"$(cat front/memory.low)\" }"
"#;

#[test]
fn fg_sets_what_it_says_and_puts_it_back() {
    let said = frontrow(&[
        "lab", "exec", "--policy", "frontrow", "--", "busybox", "sh", "-c", SCRIPT,
    ]);
    let values = serde_json::Deserializer::from_slice(&said).into_iter::<Value>();
    let values: Vec<Value> = values.collect::<Result<_, _>>().unwrap();
    let [again, dispatched, status, after] = &values[..] else {
        panic!("{values:?}");
    };
    // Refused: somebody is in front already.
    assert_eq!(again["again"], 7);
    assert!(dispatched["fg_write"].as_u64().unwrap() > 0, "{dispatched}");
    assert!(dispatched["bg_sync"].as_u64().unwrap() > 0, "{dispatched}");
    let changed: Vec<_> = status["changes"].as_array().unwrap().iter().collect();
    assert_eq!(changed.len(), 4, "{status}");
    assert_eq!(after["foreground"], "none");
    assert_eq!(after["high"], "max");
    assert_eq!(after["low"], "0");
}
