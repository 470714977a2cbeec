//! FastTrack in a guest: what is behind is kept out of the foreground's way, and the guest is
//! left as it was.

use crate::harness::{exec, lab, succeeds};
use crate::rows::Rows;
use serde_json::Value;

/// What a script prints, as JSON, in a guest with the scheduler and these options of `lab exec`.
fn values_of(options: &[&str], script: &str) -> Vec<Value> {
    let options = [&["--policy", "frontrow"], options].concat();
    succeeds(&mut exec(&options, script)).values()
}

#[test]
fn a_game_beside_an_installer_is_served_first_with_all_parts_of_fasttrack() {
    let said = succeeds(&mut lab(&[
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
    ]));
    let rows = Rows::of(&said.json());
    let figure = |policy, metric| rows.value(&[("policy", policy), ("metric", metric)]);
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
dispatched() { sed -n "s/^$1_dispatched //p" $list/dispatched; }
sh -c 'echo 0 > front/cgroup.procs; dd if=/dev/urandom of=/mnt/f bs=4k count=64 conv=fsync' 2> /dev/null
sh -c 'echo 0 > behind/cgroup.procs; dd if=/dev/urandom of=/mnt/b bs=4k count=64 conv=fsync' 2> /dev/null
echo "{ \"fg_write\": $(dispatched fg_write), \"bg_sync\": $(dispatched bg_sync), \"idle\": $(cat behind/cpu.idle) }"
frontrow fg status --json
frontrow fg release > /dev/null
echo "{ \"foreground\": \"$(cat $list/foreground)\", \"high\": \"$(cat behind/memory.high)\", \"low\": \"$(cat front/memory.low)\", \"weight\": $(cat behind/cpu.weight) }"
"#;

#[test]
fn fg_sets_what_it_says_and_puts_it_back() {
    let values = values_of(&[], SCRIPT);
    let [again, dispatched, status, after] = &values[..] else {
        panic!("{values:?}");
    };
    // Refused: settings for a foreground are in force.
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

/// A user's slice of apps, with these controllers.
fn app_slice(controllers: &str) -> String {
    let script = r#"
cd /sys/fs/cgroup
at=.
for level in user.slice user-1000.slice user@1000.service app.slice; do
    echo "CONTROLLERS" > $at/cgroup.subtree_control
    at=$at/$level
    mkdir $at
done
echo "CONTROLLERS" > $at/cgroup.subtree_control
"#;
    script.replace("CONTROLLERS", controllers)
}

/// A desktop's apps under the daemon: who has the focus by the attribute, by command, and
/// what is left after kill -9, a restart, the end of an app and of the daemon.
const DESKTOP: &str = r#"
for app in game shop mail; do
    mkdir $at/app-$app.scope
    sh -c "echo 0 > $at/app-$app.scope/cgroup.procs; exec sleep 1000" &
done
focus() { setfattr -n user.xdg.inactive-since -v $2 $at/app-$1.scope; }
lists=/sys/block/simflash0/queue/iosched
# It is the first list that is written; the daemon answers when all is done.
await() { until grep -q "$1" $lists/foreground; do usleep 10000; done; frontrow fg status > /dev/null; }
of() { cat $at/app-$1.scope/memory.$2; }
look() {
    echo "{ \"foreground\": \"$(sed 's|.*/||' $lists/foreground)\"," \
         "\"background\": \"$(sed 's|.*/||' $lists/background | tr '\n' ' ')\"," \
         "\"low\": \"$(of game low) $(of shop low) $(of mail low) $(cat user.slice/memory.low)\"," \
         "\"high\": \"$(of game high | grep -c max) $(of shop high | grep -c max) $(of mail high | grep -c max)\" }"
}
# With the unit's nice value.
start() {
    sh -c 'renice -n -10 -p $$; exec frontrow fg daemon' 2>> /tmp/log &
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
     "\"undone\": $(grep -c 'undone after a process that was killed' /tmp/log) }"
kill $(cat $at/app-shop.scope/cgroup.procs); await none; look
focus game -1; await game
kill -9 $daemon; wait $daemon; frontrow fg release > /dev/null; look
start; await game; kill $daemon; wait $daemon; echo "{ \"exit\": $? }"; look
cat /tmp/log >&2
"#;

#[test]
fn the_daemon_keeps_the_app_with_the_focus_in_front_and_leaves_nothing() {
    let values = values_of(
        &["--with", "setfattr"],
        &(app_slice("+memory +io") + DESKTOP),
    );
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
    assert_eq!(status["why"], "set by frontrow fg set");
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

/// A split screen and something behind: each reads as fast as it can, all at once, then without
/// the one that is worked with; and what the lists hold, and held before. Then the active one
/// floods the device, and what is behind syncs small writes one after another.
const SPLIT: &str = r#"
cd /sys/fs/cgroup
echo "+memory +io" > cgroup.subtree_control
list=/sys/block/simflash0/queue/iosched
for app in active large small behind; do
    mkdir $app
    dd if=/dev/zero of=/mnt/$app bs=1M count=16 conv=fsync 2> /dev/null
    sh -c "echo 0 > $app/cgroup.procs; exec sleep 1000" &
done
sleep 1
frontrow fg set /active --visible /small=10 --visible /large=40 --behind /behind > /dev/null
echo "{ \"visible\": \"$(tr '\n' ' ' < $list/visible)\", \"low\": [$(cat active/memory.low), $(cat large/memory.low), $(cat small/memory.low)] }"
echo "0 /small" > $list/visible 2> /dev/null; echo "{ \"refused\": $? }"
kb() { sed 's/.*rbytes=\([0-9]*\).*/\1/; t; s/.*/0/' $1/io.stat | tail -n 1; }
beside() {
    for app in "$@"; do
        sh -c "echo 0 > $app/cgroup.procs; while :; do dd if=/mnt/$app of=/dev/null bs=16k iflag=direct; done" 2> /dev/null &
    done
    usleep 200000
    before="$(for app in active large small behind; do kb $app; done)"
    sleep 1
    for app in active large small behind; do
        set -- $before; first=$1; shift; before="$*"
        echo $(($(kb $app) - first))
    done | tr '\n' ' ' | sed 's/ $//; s/ /, /g; s/.*/{ "bytes": [&] }\n/'
    for app in active large small behind; do
        pids=$(cat $app/cgroup.procs); set -- $pids; shift; kill -9 "$@" 2> /dev/null
    done
    usleep 200000
}
beside active large small behind
beside large small behind
now() { read up rest < /proc/uptime; echo ${up%.*}${up#*.}; }
sh -c 'echo 0 > active/cgroup.procs; while :; do dd if=/mnt/active of=/dev/null bs=128k iflag=direct; done' 2> /dev/null &
sh -c 'echo 0 > active/cgroup.procs; while :; do dd if=/dev/zero of=/mnt/large bs=1M count=8 conv=fsync,notrunc; done' 2> /dev/null &
echo $$ > behind/cgroup.procs
begin=$(now); last=$begin; slowest=0; times=0
while [ $((last - begin)) -lt 300 ]; do
    dd if=/dev/zero of=/mnt/behind bs=4k count=1 conv=fsync,notrunc 2> /dev/null
    at=$(now); [ $((at - last)) -gt $slowest ] && slowest=$((at - last))
    last=$at; times=$((times + 1))
done
echo $$ > cgroup.procs
echo "{ \"times\": $times, \"slowest_cs\": $slowest }"
frontrow fg release > /dev/null
echo "{ \"visible\": \"$(cat $list/visible)\", \"low\": [$(cat active/memory.low), $(cat large/memory.low), $(cat small/memory.low)] }"
"#;

#[test]
fn of_a_split_screen_the_active_app_goes_first_and_what_nobody_sees_last() {
    let values = values_of(&[], SPLIT);
    let [set, refused, all, without_active, beside_flood, after] = &values[..] else {
        panic!("{values:?}");
    };
    assert_eq!(set["visible"], "26 /large 6 /small ");
    assert_eq!(refused["refused"], 1);
    let of = |value: &Value, key: &str| -> Vec<u64> {
        let list = value[key].as_array().unwrap().iter();
        list.map(|it| it.as_u64().unwrap()).collect()
    };
    let low = of(set, "low");
    assert!(
        low[0] > 2 * low[1] && low[1] > 3 * low[2] && low[2] > 0,
        "{low:?}"
    );
    let [active, large, small, behind] = of(all, "bytes")[..] else {
        panic!("{all}");
    };
    assert!(
        active > 2 * large && large > 2 * small && small > behind && behind > 0,
        "{all}"
    );
    let [_, large, small, behind] = of(without_active, "bytes")[..] else {
        panic!("{without_active}");
    };
    assert!(
        10 * large > 9 * small && small > 4 * behind && behind > 0,
        "{without_active}"
    );
    assert!(
        beside_flood["times"].as_u64().unwrap() > 5,
        "{beside_flood}"
    );
    assert!(
        beside_flood["slowest_cs"].as_u64().unwrap() < 200,
        "{beside_flood}"
    );
    assert_eq!(after["visible"], "none");
    assert_eq!(of(after, "low"), [0, 0, 0]);
}

/// Android's hierarchies: apps by user id, and the groups that the activity manager moves them
/// between. Nobody polls: while nothing is written the daemon is not woken. On 6.1, as Debian's
/// 6.12 has no cpusets of the first version.
const PHONE: &str = r#"
mkdir /dev/cpuset
mount -t cgroup -o cpuset none /dev/cpuset || exit 1
for group in top-app background; do
    mkdir /dev/cpuset/$group
    for what in cpus mems; do cat /dev/cpuset/cpuset.$what > /dev/cpuset/$group/cpuset.$what; done
done
cd /sys/fs/cgroup
echo "+memory +io" > cgroup.subtree_control
for uid in 1000 10001 10002; do
    mkdir uid_$uid
    echo "+memory +io" > uid_$uid/cgroup.subtree_control
    mkdir uid_$uid/pid_1
    sh -c "echo 0 > uid_$uid/pid_1/cgroup.procs; exec sleep 1000" &
done
sleep 1
lists=/sys/block/simflash0/queue/iosched
move() { echo "$(cat uid_$1/pid_1/cgroup.procs)" > /dev/cpuset/$2; }
await() { until grep -q "^$1" $lists/foreground; do usleep 10000; done; frontrow fg status > /dev/null; }
look() { echo "{ \"front\": \"$(tr '\n' ' ' < $lists/foreground)\", \"behind\": \"$(tr '\n' ' ' < $lists/background)\" }"; }
frontrow fg daemon 2> /dev/null &
daemon=$!
until frontrow fg status --json | grep -q '"daemon":true'; do usleep 10000; done
move 1000 top-app/cgroup.procs
move 10001 top-app/cgroup.procs; await /uid_10001; look
sleep 2
wakeups() { sed -n 's/^voluntary_ctxt_switches:\t//p' /proc/$daemon/status; }
before=$(wakeups); sleep 5; echo "{ \"wakeups\": $(($(wakeups) - before)) }"
move 10002 top-app/tasks; move 10001 background/tasks; await /uid_10002; sleep 1; look
kill $(cat uid_10002/pid_1/cgroup.procs); await none; look
"#;

#[test]
fn whichever_app_android_has_on_the_screen_is_foreground() {
    let values = values_of(&["--kernel", "6.1"], PHONE);
    let [first, wakeups, second, nobody] = &values[..] else {
        panic!("{values:?}");
    };
    let is = |look: &Value, front: &str, behind: &str| {
        assert_eq!(
            (&look["front"], &look["behind"]),
            (&front.into(), &behind.into())
        );
    };
    is(first, "/uid_10001 ", "/uid_10002 ");
    assert_eq!(wakeups["wakeups"], 0, "nothing changed in five seconds");
    is(second, "/uid_10002 ", "/uid_10001 ");
    is(nobody, "none ", "none ");
}

/// A rough time: the focus changes twenty times a second; every third time an app ends and its
/// cgroup goes with it, just when it gets the focus, and comes back; somebody else writes one of
/// the knobs again and again; and an app behind forks without end.
const ROUGH: &str = r#"
begin() {
    mkdir $at/app-$1.scope
    sh -c "echo 0 > $at/app-$1.scope/cgroup.procs; exec sleep 1000" &
}
end() {
    kill $(cat $at/app-$1.scope/cgroup.procs)
    until rmdir $at/app-$1.scope 2> /dev/null; do usleep 1000; done
}
focus() { setfattr -n user.xdg.inactive-since -v $2 $at/app-$1.scope 2> /dev/null; }
for app in game shop mail chat forks; do begin $app; done
lists=/sys/block/simflash0/queue/iosched
knobs() {
    for app in game shop mail forks; do
        cat $at/app-$app.scope/memory.low $at/app-$app.scope/memory.high $at/app-$app.scope/cpu.idle
    done
    cat $at/memory.low user.slice/memory.low $lists/foreground $lists/background $lists/visible
}
before="$(knobs)"
sh -c 'renice -n -10 -p $$; exec frontrow fg daemon' 2> /tmp/log &
daemon=$!
until frontrow fg status --json | grep -q '"daemon":true'; do usleep 10000; done
sh -c "while :; do echo 99999744 > $at/app-chat.scope/memory.high; usleep 20000; done" &
other=$!
sh -c "echo 0 > $at/app-forks.scope/cgroup.procs; while :; do sleep 1 & usleep 5000; done" &
forks=$!
change=0; last=game
while [ $change -lt CHANGES ]; do
    case $((change % 3)) in 0) next=shop;; 1) next=mail;; 2) next=game;; esac
    focus $last 1
    if [ $((change % 3)) = 2 ]; then end game & focus game -1; wait $!; begin game; fi
    focus $next -1
    last=$next; change=$((change + 1))
    usleep 50000
done
focus $last 1; focus shop -1
until grep -q "app-shop" $lists/foreground; do usleep 10000; done
sleep 2
frontrow fg status --json
kill -9 $forks $other
echo "{ \"slowest_us\": $(sed -n 's/^  done \([0-9]*\) us.*/\1/p' /tmp/log | sort -n | tail -n 1)," \
     "\"changes\": $(grep -c 'in the foreground: has the focus' /tmp/log)," \
     "\"fights\": $(grep -c 'app-chat.scope/memory.high' /tmp/log)," \
     "\"journal\": $(wc -l < /run/frontrowd/foreground.jsonl) }"
kill $daemon; wait $daemon
echo "{ \"exit\": $?, \"restored\": $([ "$(knobs)" = "$before" ] && echo true || echo false), \"theirs\": $(cat $at/app-chat.scope/memory.high) }"
tail -n 5 /tmp/log >&2
"#;

fn has_a_rough_time(changes: u64) {
    let script = app_slice("+memory +io +cpu") + &ROUGH.replace("CHANGES", &changes.to_string());
    let values = values_of(&["--with", "setfattr"], &script);
    let [status, log, after] = &values[..] else {
        panic!("{values:?}");
    };
    assert!(status["front"][0].as_str().unwrap().contains("app-shop"));
    // Two that are too near each other may be seen together.
    let seen = log["changes"].as_u64().unwrap();
    assert!(seen > changes / 2, "{log}");
    // It is not set but where the focus changes, or has settled.
    assert!(log["fights"].as_u64().unwrap() <= 2 * seen, "{log}");
    assert!(log["journal"].as_u64().unwrap() < 50, "{log}");
    assert_eq!(after["exit"], 0);
    assert_eq!(after["restored"], true);
    assert_eq!(after["theirs"], 99_999_744);
}

#[test]
fn a_rough_time_leaves_everything_as_it_was() {
    has_a_rough_time(30);
}

#[test]
#[ignore = "a minute of it takes a few: make stress-guests"]
fn a_minute_of_it_leaves_everything_as_it_was() {
    has_a_rough_time(20 * 60);
}
