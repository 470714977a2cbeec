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
echo "+cpu +memory +io" > cgroup.subtree_control
mkdir front behind
sh -c 'echo 0 > /sys/fs/cgroup/front/cgroup.procs; exec sleep 1000' &
sleep 1
frontrow fg set $! --behind /behind > /tmp/set
frontrow fg set $! --behind /behind 2> /tmp/again; echo "{ \"again\": $? }"
list=/sys/block/simflash0/queue/iosched
dispatched() { sed -n "s/^$1_dispatched //p" $list/stats; }
sh -c 'echo 0 > front/cgroup.procs; dd if=/dev/urandom of=/mnt/f bs=4k count=64 conv=fsync' 2> /dev/null
sh -c 'echo 0 > behind/cgroup.procs; dd if=/dev/urandom of=/mnt/b bs=4k count=64 conv=fsync' 2> /dev/null
echo "{ \"fg_write\": $(dispatched fg_write), \"bg_sync\": $(dispatched bg_sync), \"idle\": $(cat behind/cpu.idle) }"
frontrow fg status --json
frontrow fg release > /dev/null
echo "{ \"foreground\": \"$(cat $list/foreground)\", \"high\": \"$(cat behind/memory.high)\", \"low\": \"$(cat front/memory.low)\", \"weight\": $(cat behind/cpu.weight) }"
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
    assert_eq!(dispatched["idle"], 1);
    let changed: Vec<_> = status["changes"].as_array().unwrap().iter().collect();
    assert_eq!(changed.len(), 5, "{status}");
    assert_eq!(after["foreground"], "none");
    assert_eq!(after["high"], "max");
    assert_eq!(after["low"], "0");
    assert_eq!(after["weight"], 100);
}

/// A desktop's apps under the daemon: who has the focus by the attribute, by command, and
/// what is left after kill -9, a restart, the end of an app and of the daemon.
const DESKTOP: &str = r#"
cd /sys/fs/cgroup
at=.
for level in user.slice user-1000.slice user@1000.service app.slice; do
    echo "+memory +io" > $at/cgroup.subtree_control
    at=$at/$level
    mkdir $at
done
echo "+memory +io" > $at/cgroup.subtree_control
for app in game shop mail; do
    mkdir $at/app-$app.scope
    sh -c "echo 0 > $at/app-$app.scope/cgroup.procs; exec sleep 1000" &
done
focus() { setfattr -n user.xdg.inactive-since -v $2 $at/app-$1.scope; }
lists=/sys/block/simflash0/queue/iosched
await() { until grep -q "$1" $lists/foreground; do usleep 10000; done; }
of() { cat $at/app-$1.scope/memory.$2; }
look() {
    echo "{ \"foreground\": \"$(sed 's|.*/||' $lists/foreground)\"," \
         "\"background\": \"$(sed 's|.*/||' $lists/background | tr '\n' ' ')\"," \
         "\"low\": \"$(of game low) $(of shop low) $(of mail low) $(cat user.slice/memory.low)\"," \
         "\"high\": \"$(of game high | grep -c max) $(of shop high | grep -c max) $(of mail high | grep -c max)\" }"
}
start() {
    frontrow fg daemon 2>> /tmp/log &
    daemon=$!
    until frontrow fg status --json | grep -q '"daemon":true'; do usleep 10000; done
}
wakeups() { sed -n 's/^voluntary_ctxt_switches:\t//p' /proc/$daemon/status; }
start
focus game -1; await game; look
focus game 1000; focus shop -1; await shop; look
frontrow fg set /${at#./}/app-mail.scope > /dev/null; look
sleep 2
before=$(wakeups); sleep 10; echo "{ \"wakeups\": $(($(wakeups) - before)) }"
frontrow fg status --json
kill -9 $daemon; wait $daemon; look
start; await shop; look
echo "{ \"slowest_us\": $(sed -n 's/^  done \([0-9]*\) us.*/\1/p' /tmp/log | sort -n | tail -n 1)," \
     "\"undone\": $(grep -c 'left by a process that was killed' /tmp/log) }"
kill $(cat $at/app-shop.scope/cgroup.procs); await none; look
focus game -1; await game
kill -9 $daemon; wait $daemon; frontrow fg release > /dev/null; look
start; await game; kill $daemon; wait $daemon; echo "{ \"exit\": $? }"; look
cat /tmp/log >&2
"#;

#[test]
fn the_daemon_keeps_the_app_with_the_focus_in_front_and_leaves_nothing() {
    let said = frontrow(&[
        "lab", "exec", "--policy", "frontrow", "--with", "setfattr", "--", "busybox", "sh", "-c",
        DESKTOP,
    ]);
    let values = serde_json::Deserializer::from_slice(&said).into_iter::<Value>();
    let values: Vec<Value> = values.collect::<Result<_, _>>().unwrap();
    let [
        seen,
        changed,
        said,
        wakeups,
        status,
        killed,
        seen_again,
        undone,
        ended,
        released,
        exit,
        stopped,
    ] = &values[..]
    else {
        panic!("{values:?}");
    };
    let front = |look: &Value| {
        let app = look["foreground"].as_str().unwrap().to_owned();
        let low = look["low"].as_str().unwrap();
        let low: Vec<bool> = low.split(' ').map(|it| it != "0").collect();
        (app, low, look["high"].as_str().unwrap().to_owned())
    };
    let named = |app: &str| format!("app-{app}.scope");
    let only = |app: usize| {
        let mut low = vec![false; 4];
        low[app] = true;
        low[3] = true;
        low
    };
    let game = (named("game"), only(0), "1 0 0".to_owned());
    let shop = (named("shop"), only(1), "0 1 0".to_owned());
    let mail = (named("mail"), only(2), "0 0 1".to_owned());
    let nobody = ("none".to_owned(), vec![false; 4], "1 1 1".to_owned());
    assert_eq!(front(seen), game);
    assert_eq!(seen["background"], "app-mail.scope app-shop.scope ");
    assert_eq!(front(changed), shop);
    assert_eq!(front(said), mail);
    assert_eq!(wakeups["wakeups"], 0, "nothing changed in ten seconds");
    assert_eq!(status["why"], "said by frontrow fg set");
    assert_eq!(status["changes"].as_array().unwrap().len(), 9, "{status}");
    assert_eq!(front(killed), mail);
    // What was said was the killed one's; the focus is where it was.
    assert_eq!(front(seen_again), shop);
    assert_eq!(undone["undone"], 1);
    // Of a program that is not optimised, and in virtual time.
    let slowest_us = undone["slowest_us"].as_u64().unwrap();
    assert!(slowest_us <= 10_000, "a change took {slowest_us} us");
    for after in [ended, released, stopped] {
        assert_eq!(front(after), nobody);
    }
    assert_eq!(exit["exit"], 0);
}
