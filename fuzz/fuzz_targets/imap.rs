#![no_main]
//! A server that sends any bytes: each call ends without a panic, and its answer is not longer
//! than they are.

use libfuzzer_sys::fuzz_target;
use skillbook_connect::imap::{Answer, Bytes, Call, Connection, Key};
use skillbook_connect::net::Stream;
use tokio::io::{join, sink};

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, said) = input;
    let folder = || Bytes(b"INBOX".to_vec());
    let call = match choice % 7 {
        0 => Call::Folders,
        1 => Call::Select(folder(), true),
        2 => Call::Search(vec![Key::Text("é".to_owned())]),
        3 => Call::Fetch(vec![7], vec!["Subject".to_owned()], Some((0, 9))),
        4 => Call::Move(vec![7], folder()),
        5 => Call::Store(vec![7], true, vec!["\\Seen".to_owned()]),
        _ => Call::Append(folder(), Vec::new(), Bytes(b"Subject: x\r\n\r\n".to_vec())),
    };
    let server = Stream::new(join(std::io::Cursor::new(said.to_vec()), sink()), said.len());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let Ok(answer) = runtime.block_on(Connection::new(server, true).call(call)) else { return };
    let size = match answer {
        Answer::Done => 0,
        Answer::Folders(all) => all.iter().map(|folder| folder.name.len()).sum(),
        Answer::Selected(selected) => selected.keywords.iter().map(String::len).sum(),
        Answer::Uids(uids) => uids.len(),
        Answer::Messages(all) => all.iter().map(|one| one.headers.len() + one.piece.len()).sum(),
    };
    assert!(size <= said.len());
});
