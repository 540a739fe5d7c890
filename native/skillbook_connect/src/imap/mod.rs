//! Mailboxes by IMAP, with imap-next for the protocol.
//!
//! A [`Connection`] is signed in and runs one command at a time. imap-next limits the nesting of
//! answers. Here are the other limits: the bytes of the answers to one call (`ANSWERS`),
//! and those of one answer (`ANSWER`). A message is therefore read in pieces, see [`Call::Fetch`].
//! A connection with an answer that cannot be read is not used again, and answers about messages
//! that were not asked for are left out.
//!
//! Texts that are searched for are sent as literals if they are not plain words, so no text can
//! add a condition or a command. Names of folders are bytes, as the server gave them.

mod pool;
pub mod session;

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;

use imap_next::client::{Client, Error, Event, Options};
use imap_next::imap_types::auth::{AuthMechanism, AuthenticateData};
use imap_next::imap_types::command::{Command, CommandBody};
use imap_next::imap_types::core::{AString, Atom, Charset, Literal, Tag, Vec1};
use imap_next::imap_types::datetime::NaiveDate;
use imap_next::imap_types::extensions::binary::LiteralOrLiteral8;
use imap_next::imap_types::fetch::{
    MacroOrMessageDataItemNames, MessageDataItem, MessageDataItemName, Section,
};
use imap_next::imap_types::flag::{Flag, FlagFetch, FlagPerm, StoreResponse, StoreType};
use imap_next::imap_types::mailbox::{ListMailbox, Mailbox};
use imap_next::imap_types::response::{
    Capability, Code, Data, GreetingKind, Status, StatusKind, Tagged,
};
use imap_next::imap_types::search::SearchKey;
use imap_next::imap_types::secret::Secret;
use imap_next::imap_types::sequence::{Sequence, SequenceSet};
use imap_next::{Interrupt, Io, State};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::net::{self, io_fault, Fault, Kind, Login, Result, Server, Stream, Tls};

/// The most bytes of all answers to one call, and of one of them.
const ANSWERS: usize = 16 * 1024 * 1024;
const ANSWER: u32 = 8 * 1024 * 1024;

/// The most answers to one command.
const COUNT: usize = 20_000;

/// The most folders, and the most numbers or ranges of a command, since servers limit its length.
const FOLDERS: usize = 2_000;
const RANGES: usize = 200;

/// The longest name of a folder in bytes.
const NAME: usize = 2_000;

/// The most messages that a search finds, the last ones, and the most flags of a folder or message.
const FOUND: usize = 2_000;
const FLAGS: usize = 1_000;

/// The times that Elixir's calendar has: the years 0 to 9999.
const TIMES: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

/// The name of a folder, or a mail.
pub struct Bytes(pub Vec<u8>);

/// A command of a signed-in connection. Messages are named by UIDs of the selected folder.
#[cfg_attr(all(feature = "nif", not(test)), derive(rustler::NifTaggedEnum), rustler(decode))]
pub enum Call {
    Folders,
    /// The folder, and whether it is only read.
    Select(Bytes, bool),
    Search(Vec<Key>),
    /// The names of the headers to return, and a piece of the message: its place and its length.
    /// Marks nothing as read.
    Fetch(Vec<u32>, Vec<String>, Option<(u32, u32)>),
    /// Whether to add the flags or to remove them.
    Store(Vec<u32>, bool, Vec<String>),
    Move(Vec<u32>, Bytes),
    Delete(Vec<u32>),
    Create(Bytes),
    Append(Bytes, Vec<String>, Bytes),
}

/// A condition of a search. Dates are year, month and day.
#[cfg_attr(all(feature = "nif", not(test)), derive(rustler::NifTaggedEnum), rustler(decode))]
pub enum Key {
    Text(String),
    From(String),
    To(String),
    Cc(String),
    Bcc(String),
    Subject(String),
    Header(String, String),
    Since(i32, u32, u32),
    Before(i32, u32, u32),
    Seen,
    Unseen,
    Flagged,
    Undeleted,
    Undraft,
    Keyword(String),
    /// The size in bytes.
    Size(u32),
    /// One of these.
    Any(Vec<Key>),
    /// None of these.
    Not(Vec<Key>),
}

#[derive(Debug)]
pub enum Answer {
    Done,
    Folders(Vec<Folder>),
    Selected(Selected),
    Uids(Vec<u32>),
    Messages(Vec<Message>),
}

#[derive(Debug)]
pub struct Folder {
    pub name: Vec<u8>,
    pub attributes: Vec<String>,
}

/// `keywords` are those in use; `any_keyword` is whether new ones can be made.
#[derive(Debug, Default)]
pub struct Selected {
    pub messages: u32,
    pub keywords: Vec<String>,
    pub any_keyword: bool,
}

/// A message without its text. `date` is when the server received it, in seconds since 1970.
#[derive(Debug, Default)]
pub struct Message {
    pub uid: u32,
    pub flags: Vec<String>,
    pub date: i64,
    pub size: u32,
    pub headers: Vec<u8>,
    pub piece: Vec<u8>,
}

/// A connection that is signed in.
pub struct Connection {
    stream: Stream,
    client: Client,
    capabilities: Vec<Capability<'static>>,
    commands: u64,
    /// The UIDVALIDITY of each folder that the caller has selected.
    validities: HashMap<Vec<u8>, Option<NonZeroU32>>,
}

/// The answers to a command.
#[derive(Default)]
struct Answers {
    data: Vec<Data<'static>>,
    codes: Vec<Code<'static>>,
}

impl Connection {
    pub async fn open(server: &Server, login: &Login) -> Result<Connection> {
        let stream = net::connect(server, ANSWERS, starttls).await?;
        let mut connection = Connection::new(stream, server.tls == Tls::StartTls);
        if server.tls == Tls::Implicit {
            connection.greet().await?;
        }
        // Capabilities from before the encryption do not count.
        connection.ask_capabilities().await?;
        connection.sign_in(login).await?;
        connection.ask_capabilities().await?;
        Ok(connection)
    }

    /// A connection that is not signed in. `is_greeted` is whether the server's greeting was read.
    pub fn new(stream: Stream, is_greeted: bool) -> Connection {
        let mut options = Options::default();
        options.crlf_relaxed = true;
        options.max_response_size = ANSWER;
        options.discard_greeting = is_greeted;
        let client = Client::new(options);
        let validities = HashMap::new();
        Connection { stream, client, capabilities: Vec::new(), commands: 0, validities }
    }

    /// Begins the calls of another caller, who knows no UIDs yet.
    pub async fn check(&mut self) -> Result<()> {
        self.validities.clear();
        self.stream.left = ANSWERS;
        self.run(CommandBody::Noop).await.map(|_| ())
    }

    pub async fn call(&mut self, call: Call) -> Result<Answer> {
        self.stream.left = ANSWERS;
        match call {
            Call::Folders => self.folders().await,
            Call::Select(folder, is_read_only) => self.select(folder, is_read_only).await,
            Call::Search(keys) => self.search(keys).await,
            Call::Fetch(uids, headers, piece) => self.fetch(uids, headers, piece).await,
            Call::Store(uids, adds, flags) => self.store(uids, adds, flags).await,
            Call::Move(uids, folder) => self.move_to(uids, folder).await,
            Call::Delete(uids) => self.delete(uids).await,
            Call::Create(folder) => {
                self.run(CommandBody::Create { mailbox: mailbox(folder)? }).await?;
                Ok(Answer::Done)
            }
            Call::Append(folder, flags, bytes) => self.append(folder, flags, bytes).await,
        }
    }

    async fn greet(&mut self) -> Result<()> {
        match self.event().await? {
            Event::GreetingReceived { greeting } if greeting.kind == GreetingKind::Ok => Ok(()),
            // Another identity than that of the account.
            Event::GreetingReceived { greeting } if greeting.kind == GreetingKind::PreAuth => {
                let text = "the server signs in by itself, so the account's name is not used";
                Err(Fault::new(Kind::Login, text))
            }
            Event::GreetingReceived { greeting } => {
                let said = greeting.text.inner();
                Err(Fault::quoting(Kind::Connect, "the server refuses connections", said))
            }
            _ => Err(unexpected()),
        }
    }

    async fn ask_capabilities(&mut self) -> Result<()> {
        let answers = self.run(CommandBody::Capability).await?;
        self.capabilities = answers
            .data
            .into_iter()
            .filter_map(|data| match data {
                Data::Capability(list) => Some(list.into_inner()),
                _ => None,
            })
            .next_back()
            .unwrap_or_default();
        Ok(())
    }

    fn can(&self, capability: &Capability) -> bool {
        self.capabilities.contains(capability)
    }

    async fn sign_in(&mut self, login: &Login) -> Result<()> {
        let Login { username, secret, is_token } = login;
        let (mechanism, response) = if *is_token {
            // https://developers.google.com/workspace/gmail/imap/xoauth2-protocol
            (AuthMechanism::XOAuth2, format!("user={username}\x01auth=Bearer {secret}\x01\x01"))
        } else {
            (AuthMechanism::Plain, format!("\0{username}\0{secret}"))
        };
        let body = if self.can(&Capability::Auth(mechanism.clone())) {
            let can_say_at_once = self.can(&Capability::SaslIr);
            return self.authenticate(mechanism, response.into_bytes(), can_say_at_once).await;
        } else if *is_token {
            let text = "the server does not offer to sign in with XOAUTH2";
            return Err(Fault::new(Kind::Login, text));
        } else if self.can(&Capability::LoginDisabled) {
            let text = "the server does not offer to sign in with PLAIN or LOGIN";
            return Err(Fault::new(Kind::Login, text));
        } else {
            CommandBody::Login {
                username: string(username.clone())?,
                password: Secret::new(string(secret.clone())?),
            }
        };
        self.run(body).await.map(|_| ()).map_err(login_refused)
    }

    async fn authenticate(
        &mut self,
        mechanism: AuthMechanism<'static>,
        response: Vec<u8>,
        can_say_at_once: bool,
    ) -> Result<()> {
        let mut response = Some(response);
        let body = if can_say_at_once {
            let first = response.take().unwrap_or_default();
            CommandBody::authenticate_with_ir(mechanism, first)
        } else {
            CommandBody::authenticate(mechanism)
        };
        self.enqueue(body)?;
        loop {
            match self.event().await? {
                Event::AuthenticateContinuationRequestReceived { .. } => {
                    // The server explains an error with a further question, which is answered with
                    // nothing.
                    let data = AuthenticateData::r#continue(response.take().unwrap_or_default());
                    self.client.set_authenticate_data(data).map_err(|_| unexpected())?;
                }
                Event::AuthenticateStatusReceived { status, .. }
                | Event::StatusReceived { status } => match status {
                    Status::Tagged(tagged) => {
                        return self.finished(tagged).map(|_| ()).map_err(login_refused);
                    }
                    Status::Bye(bye) => return Err(goodbye(bye.text.inner())),
                    Status::Untagged(_) => {}
                },
                Event::AuthenticateStarted { .. } | Event::DataReceived { .. } => {}
                _ => return Err(unexpected()),
            }
        }
    }

    async fn folders(&mut self) -> Result<Answer> {
        let body = CommandBody::List {
            reference: mailbox(Bytes(Vec::new()))?,
            mailbox_wildcard: ListMailbox::try_from("*").map_err(|_| unexpected())?,
        };
        let mut folders = Vec::new();
        for data in self.run(body).await?.data {
            let Data::List { items, mailbox, .. } = data else { continue };
            let name = match mailbox {
                Mailbox::Inbox => b"INBOX".to_vec(),
                Mailbox::Other(other) => other.inner().as_ref().to_vec(),
            };
            if name.len() > NAME {
                let text = format!("the name of a folder has more than {NAME} bytes");
                return Err(Fault::new(Kind::TooLarge, text));
            }
            let attributes = items.iter().take(FLAGS).map(ToString::to_string).collect();
            folders.push(Folder { name, attributes });
            if folders.len() > FOLDERS {
                let text = format!("the account has more than {FOLDERS} folders");
                return Err(Fault::new(Kind::TooLarge, text));
            }
        }
        Ok(Answer::Folders(folders))
    }

    async fn select(&mut self, folder: Bytes, is_read_only: bool) -> Result<Answer> {
        let name = folder.0.clone();
        let mailbox = mailbox(folder)?;
        let body = match is_read_only {
            true => CommandBody::Examine { mailbox },
            false => CommandBody::Select { mailbox },
        };
        let answers = self.run(body).await?;
        let validity = answers.codes.iter().rev().find_map(|code| match code {
            Code::UidValidity(number) => Some(*number),
            _ => None,
        });
        // Its UIDs are those of other messages.
        if self.validities.insert(name, validity).is_some_and(|before| before != validity) {
            return Err(Fault::new(Kind::Closed, "the folder was replaced by another one"));
        }
        let mut selected = Selected::default();
        for data in answers.data {
            match data {
                Data::Exists(count) => selected.messages = count,
                Data::Flags(flags) => selected.keywords = keywords(&flags),
                _ => {}
            }
        }
        selected.any_keyword = answers.codes.iter().any(|code| match code {
            Code::PermanentFlags(flags) => flags.contains(&FlagPerm::Asterisk),
            _ => false,
        });
        Ok(Answer::Selected(selected))
    }

    async fn search(&mut self, keys: Vec<Key>) -> Result<Answer> {
        // Some servers refuse to hear of a charset, which plain words do not need.
        let is_ascii = keys.iter().all(Key::is_ascii);
        let charset = match is_ascii {
            true => None,
            false => Some(Charset::try_from("UTF-8").map_err(|_| unexpected())?),
        };
        let criteria = keys.into_iter().map(Key::encode).collect::<Result<Vec<_>>>()?;
        let criteria = Vec1::try_from(criteria).unwrap_or_else(|_| Vec1::from(SearchKey::All));
        let answers = self.run(CommandBody::search(charset, criteria, true)).await?;
        let uids = answers.data.into_iter().filter_map(|data| match data {
            Data::Search(uids) => Some(uids),
            _ => None,
        });
        let mut uids: Vec<u32> = uids.flatten().map(NonZeroU32::get).collect();
        uids.sort_unstable();
        uids.dedup();
        Ok(Answer::Uids(uids.split_off(uids.len().saturating_sub(FOUND))))
    }

    async fn fetch(
        &mut self,
        uids: Vec<u32>,
        headers: Vec<String>,
        piece: Option<(u32, u32)>,
    ) -> Result<Answer> {
        let mut names = vec![
            MessageDataItemName::Uid,
            MessageDataItemName::Flags,
            MessageDataItemName::InternalDate,
            MessageDataItemName::Rfc822Size,
        ];
        if !headers.is_empty() {
            let headers = headers.into_iter().map(string).collect::<Result<Vec<_>>>()?;
            let headers = Vec1::try_from(headers).map_err(|_| unexpected())?;
            let section = Some(Section::HeaderFields(None, headers));
            names.push(MessageDataItemName::BodyExt { section, partial: None, peek: true });
        }
        if let Some((place, length)) = piece {
            let length = NonZeroU32::new(length).ok_or_else(unexpected)?;
            let partial = Some((place, length));
            names.push(MessageDataItemName::BodyExt { section: None, partial, peek: true });
        }
        let mut asked: BTreeSet<u32> = uids.iter().copied().collect();
        let mut messages = Vec::new();
        for sequence_set in sets(uids) {
            let macro_or_item_names =
                MacroOrMessageDataItemNames::MessageDataItemNames(names.clone());
            let body = CommandBody::Fetch { sequence_set, macro_or_item_names, uid: true };
            for data in self.run(body).await?.data {
                let Data::Fetch { items, .. } = data else { continue };
                let message = Message::new(items.into_inner());
                // An update of the flags of some message has no size.
                if message.size > 0 && asked.remove(&message.uid) {
                    messages.push(message);
                }
            }
        }
        Ok(Answer::Messages(messages))
    }

    async fn store(&mut self, uids: Vec<u32>, adds: bool, flags: Vec<String>) -> Result<Answer> {
        let flags = flags.iter().map(|text| flag(text)).collect::<Result<Vec<_>>>()?;
        let kind = if adds { StoreType::Add } else { StoreType::Remove };
        for sequence_set in sets(uids) {
            let flags = flags.clone();
            let response = StoreResponse::Silent;
            self.run(CommandBody::Store { sequence_set, kind, response, flags, uid: true }).await?;
        }
        Ok(Answer::Done)
    }

    async fn move_to(&mut self, uids: Vec<u32>, folder: Bytes) -> Result<Answer> {
        let mailbox = mailbox(folder)?;
        for sequence_set in sets(uids) {
            let mailbox = mailbox.clone();
            if self.can(&Capability::Move) {
                self.run(CommandBody::Move { sequence_set, mailbox, uid: true }).await?;
            } else {
                let copied = sequence_set.clone();
                self.run(CommandBody::Copy { sequence_set: copied, mailbox, uid: true }).await?;
                self.expunge(sequence_set).await?;
            }
        }
        Ok(Answer::Done)
    }

    async fn delete(&mut self, uids: Vec<u32>) -> Result<Answer> {
        for sequence_set in sets(uids) {
            self.expunge(sequence_set).await?;
        }
        Ok(Answer::Done)
    }

    /// Without UIDPLUS the messages are only marked: EXPUNGE would also remove those that others
    /// have marked. Searches leave marked messages out.
    async fn expunge(&mut self, sequence_set: SequenceSet) -> Result<()> {
        let mark = CommandBody::Store {
            sequence_set: sequence_set.clone(),
            kind: StoreType::Add,
            response: StoreResponse::Silent,
            flags: vec![Flag::Deleted],
            uid: true,
        };
        self.run(mark).await?;
        if self.can(&Capability::UidPlus) {
            self.run(CommandBody::ExpungeUid { sequence_set }).await?;
        }
        Ok(())
    }

    async fn append(&mut self, folder: Bytes, flags: Vec<String>, bytes: Bytes) -> Result<Answer> {
        let message = Literal::try_from(bytes.0)
            .map_err(|_| Fault::new(Kind::Request, "a mail must not contain zero bytes"))?;
        let body = CommandBody::Append {
            mailbox: mailbox(folder)?,
            flags: flags.iter().map(|text| flag(text)).collect::<Result<Vec<_>>>()?,
            date: None,
            message: LiteralOrLiteral8::Literal(message),
        };
        let answers = self.run(body).await?;
        let uid = answers.codes.into_iter().find_map(|code| match code {
            Code::AppendUid { uid, .. } => Some(uid.get()),
            _ => None,
        });
        Ok(Answer::Uids(uid.into_iter().collect()))
    }

    fn enqueue(&mut self, body: CommandBody<'static>) -> Result<()> {
        self.commands += 1;
        let tag = Tag::try_from(self.tag()).map_err(|_| unexpected())?;
        self.client.enqueue_command(Command { tag, body });
        Ok(())
    }

    fn tag(&self) -> String {
        format!("s{}", self.commands)
    }

    /// The result of a command, which has its tag.
    fn finished(&self, status: Tagged<'static>) -> Result<Option<Code<'static>>> {
        match status.body.kind {
            _ if status.tag.inner() != self.tag() => Err(unexpected()),
            StatusKind::Ok => Ok(status.body.code),
            _ => Err(Fault::quoting(Kind::Refused, "", status.body.text.inner())),
        }
    }

    async fn run(&mut self, body: CommandBody<'static>) -> Result<Answers> {
        self.enqueue(body)?;
        let mut answers = Answers::default();
        loop {
            match self.event().await? {
                Event::DataReceived { .. } if answers.data.len() == COUNT => {
                    let text = format!("the server sent more than {COUNT} answers to a command");
                    return Err(Fault::new(Kind::TooLarge, text));
                }
                Event::DataReceived { data } => answers.data.push(data),
                Event::CommandRejected { status, .. } | Event::StatusReceived { status } => {
                    match status {
                        Status::Tagged(tagged) => {
                            answers.codes.extend(self.finished(tagged)?);
                            return Ok(answers);
                        }
                        Status::Untagged(body) => answers.codes.extend(body.code),
                        Status::Bye(bye) => return Err(goodbye(bye.text.inner())),
                    }
                }
                Event::CommandSent { .. } => {}
                _ => return Err(unexpected()),
            }
        }
    }

    async fn event(&mut self) -> Result<Event> {
        loop {
            match self.client.next() {
                Ok(event) => return Ok(event),
                Err(Interrupt::Io(Io::Output(bytes))) => {
                    self.stream.write_all(&bytes).await.map_err(|error| io_fault(&error))?;
                }
                Err(Interrupt::Io(Io::NeedMoreInput)) => {
                    self.stream.flush().await.map_err(|error| io_fault(&error))?;
                    let mut buffer = [0; 16 * 1024];
                    let read =
                        self.stream.read(&mut buffer).await.map_err(|error| io_fault(&error))?;
                    if read == 0 {
                        return Err(io_fault(&std::io::ErrorKind::UnexpectedEof.into()));
                    }
                    self.client.enqueue_input(&buffer[..read]);
                }
                Err(Interrupt::Error(Error::ResponseTooLong { .. })) => {
                    let text = "an answer of the server has more bytes than allowed";
                    return Err(Fault::new(Kind::TooLarge, text));
                }
                Err(Interrupt::Error(_)) => return Err(unexpected()),
            }
        }
    }
}

/// The part before the encryption: greeting and STARTTLS.
async fn starttls(tcp: &mut TcpStream) -> Result<()> {
    let greeting = net::read_lines(tcp, |_| true).await?;
    let greeting = greeting.first().map(String::as_str).unwrap_or_default();
    if !greeting.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("* OK ")) {
        let text = "expected the greeting of an IMAP server";
        return Err(Fault::quoting(Kind::Connect, text, greeting));
    }
    net::write_line(tcp, "s STARTTLS").await?;
    let answer = net::read_lines(tcp, |line| line.starts_with("s ")).await?;
    let answer = answer.last().map(String::as_str).unwrap_or_default();
    match answer.get(..5) {
        Some(start) if start.eq_ignore_ascii_case("s OK ") => Ok(()),
        _ => {
            let text =
                "the server does not offer STARTTLS, so the connection would not be encrypted";
            Err(Fault::new(Kind::StartTls, text))
        }
    }
}

impl Message {
    fn new(items: Vec<MessageDataItem>) -> Message {
        let mut message = Message::default();
        for item in items {
            match item {
                MessageDataItem::Uid(uid) => message.uid = uid.get(),
                MessageDataItem::Flags(flags) => {
                    message.flags = flags
                        .iter()
                        .filter_map(|flag| match flag {
                            FlagFetch::Flag(flag) => Some(flag.to_string()),
                            FlagFetch::Recent => None,
                        })
                        .take(FLAGS)
                        .collect();
                }
                MessageDataItem::InternalDate(date) => {
                    let time = date.as_ref().timestamp();
                    message.date = time.clamp(*TIMES.start(), *TIMES.end());
                }
                MessageDataItem::Rfc822Size(size) => message.size = size,
                MessageDataItem::BodyExt { section, data, .. } => {
                    let data = data.into_option().map(|data| data.into_owned()).unwrap_or_default();
                    match section {
                        None => message.piece = data,
                        Some(_) => message.headers = data,
                    }
                }
                _ => {}
            }
        }
        message
    }
}

impl Key {
    fn is_ascii(&self) -> bool {
        match self {
            Key::Text(text)
            | Key::From(text)
            | Key::To(text)
            | Key::Cc(text)
            | Key::Bcc(text)
            | Key::Subject(text)
            | Key::Header(_, text) => text.is_ascii(),
            Key::Any(keys) | Key::Not(keys) => keys.iter().all(Key::is_ascii),
            _ => true,
        }
    }

    fn encode(self) -> Result<SearchKey<'static>> {
        Ok(match self {
            Key::Text(text) => SearchKey::Text(string(text)?),
            Key::From(text) => SearchKey::From(string(text)?),
            Key::To(text) => SearchKey::To(string(text)?),
            Key::Cc(text) => SearchKey::Cc(string(text)?),
            Key::Bcc(text) => SearchKey::Bcc(string(text)?),
            Key::Subject(text) => SearchKey::Subject(string(text)?),
            Key::Header(name, text) => SearchKey::Header(string(name)?, string(text)?),
            Key::Since(year, month, day) => SearchKey::Since(date(year, month, day)?),
            Key::Before(year, month, day) => SearchKey::Before(date(year, month, day)?),
            Key::Seen => SearchKey::Seen,
            Key::Unseen => SearchKey::Unseen,
            Key::Flagged => SearchKey::Flagged,
            Key::Undeleted => SearchKey::Undeleted,
            Key::Undraft => SearchKey::Undraft,
            Key::Keyword(name) => SearchKey::Keyword(atom(name)?),
            Key::Size(size) => {
                let larger = SearchKey::Larger(size.saturating_sub(1));
                let smaller = SearchKey::Smaller(size.saturating_add(1));
                SearchKey::And(Vec1::try_from(vec![larger, smaller]).map_err(|_| unexpected())?)
            }
            Key::Any(keys) => one_of(keys)?,
            Key::Not(keys) => SearchKey::Not(Box::new(one_of(keys)?)),
        })
    }
}

fn one_of(keys: Vec<Key>) -> Result<SearchKey<'static>> {
    let keys = keys.into_iter().map(Key::encode).collect::<Result<Vec<_>>>()?;
    let join = |one, other| SearchKey::Or(Box::new(one), Box::new(other));
    let no_key = || Fault::new(Kind::Request, "expected a condition");
    keys.into_iter().reduce(join).ok_or_else(no_key)
}

fn date(year: i32, month: u32, day: u32) -> Result<NaiveDate> {
    let date = chrono::NaiveDate::from_ymd_opt(year, month, day);
    date.and_then(|date| NaiveDate::try_from(date).ok())
        .ok_or_else(|| Fault::new(Kind::Request, "expected a date"))
}

fn string(text: String) -> Result<AString<'static>> {
    AString::try_from(text)
        .map_err(|_| Fault::new(Kind::Request, "expected a text without zero bytes"))
}

fn atom(text: String) -> Result<Atom<'static>> {
    Atom::try_from(text).map_err(|_| Fault::new(Kind::Request, "expected the name of a keyword"))
}

fn flag(text: &str) -> Result<Flag<'static>> {
    match text.strip_prefix('\\') {
        Some(name) => Ok(Flag::system(atom(name.to_owned())?)),
        None => Ok(Flag::keyword(atom(text.to_owned())?)),
    }
}

fn keywords(flags: &[Flag]) -> Vec<String> {
    let keyword = |flag: &Flag| matches!(flag, Flag::Keyword(_)).then(|| flag.to_string());
    flags.iter().filter_map(keyword).take(FLAGS).collect()
}

fn mailbox(name: Bytes) -> Result<Mailbox<'static>> {
    Mailbox::try_from(name.0)
        .map_err(|_| Fault::new(Kind::Request, "expected the name of a folder without zero bytes"))
}

/// Sets of the numbers, as ranges. Zeros are left out.
fn sets(mut uids: Vec<u32>) -> Vec<SequenceSet> {
    uids.sort_unstable();
    uids.dedup();
    let mut ranges: Vec<(NonZeroU32, NonZeroU32)> = Vec::new();
    for uid in uids.into_iter().filter_map(NonZeroU32::new) {
        match ranges.last_mut() {
            Some((_, last)) if last.get() + 1 == uid.get() => *last = uid,
            _ => ranges.push((uid, uid)),
        }
    }
    ranges
        .chunks(RANGES)
        .filter_map(|chunk| {
            let range = |&(first, last): &(NonZeroU32, NonZeroU32)| match first == last {
                true => Sequence::Single(first.into()),
                false => Sequence::Range(first.into(), last.into()),
            };
            SequenceSet::try_from(chunk.iter().map(range).collect::<Vec<_>>()).ok()
        })
        .collect()
}

fn login_refused(fault: Fault) -> Fault {
    match fault.kind {
        Kind::Refused => Fault { kind: Kind::Login, ..fault },
        _ => fault,
    }
}

fn goodbye(text: &str) -> Fault {
    Fault::quoting(Kind::Closed, "the server closed the connection", text)
}

fn unexpected() -> Fault {
    Fault::new(Kind::Malformed, "the server's answer is not valid IMAP")
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use tokio::io::{duplex, AsyncWriteExt};

    use super::*;

    /// The result of a call to a server that says this and hangs up.
    fn play(said: &[u8], call: Call) -> Result<Answer> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (ours, mut theirs) = duplex(1024 * 1024);
            theirs.write_all(said).await.expect("room for all of it");
            theirs.shutdown().await.expect("an open end");
            Connection::new(Stream::new(ours, ANSWERS), true).call(call).await
        })
    }

    fn bytes(text: &str) -> Bytes {
        Bytes(text.as_bytes().to_vec())
    }

    fn calls() -> Vec<(Call, &'static str)> {
        vec![
            (
                Call::Folders,
                "* LIST (\\HasNoChildren \\Sent) \"/\" {4}\r\nSent\r\n\
                 * LIST () NIL INBOX\r\ns1 OK done\r\n",
            ),
            (
                Call::Select(bytes("INBOX"), true),
                "* FLAGS (\\Seen a)\r\n* 3 EXISTS\r\n* OK [PERMANENTFLAGS (\\*)] x\r\n\
                 s1 OK [READ-ONLY] x\r\n",
            ),
            (Call::Search(vec![Key::Unseen]), "* SEARCH 3 4 7\r\ns1 OK done\r\n"),
            (
                Call::Fetch(vec![7], vec!["Subject".to_owned()], Some((0, 9))),
                "* 1 FETCH (UID 7 FLAGS (\\Seen) INTERNALDATE \"17-Feb-2026 12:00:00 +0000\" \
                 RFC822.SIZE 9 BODY[HEADER.FIELDS (SUBJECT)] {3}\r\nabc BODY[]<0> \"x\")\r\n\
                 s1 OK done\r\n",
            ),
            (
                Call::Append(bytes("Sent"), vec!["\\Seen".to_owned()], bytes("Subject: x\r\n\r\n")),
                "+ go\r\ns1 OK [APPENDUID 1 2] done\r\n",
            ),
        ]
    }

    #[test]
    fn reads_what_servers_say() {
        let answers = calls().into_iter().map(|(call, said)| play(said.as_bytes(), call));
        let answers: Vec<_> = answers.map(|answer| answer.expect("an answer")).collect();
        use Answer::{Folders, Messages, Selected, Uids};
        let [Folders(folders), Selected(selected), Uids(found), Messages(messages), Uids(stored)] =
            &answers[..]
        else {
            panic!("other answers");
        };
        let names: Vec<_> = folders.iter().map(|folder| folder.name.as_slice()).collect();
        assert_eq!(names, [b"Sent".as_slice(), b"INBOX"]);
        assert_eq!(folders[0].attributes, ["\\HasNoChildren", "\\Sent"]);
        assert_eq!((selected.messages, selected.any_keyword), (3, true));
        assert_eq!(selected.keywords, ["a"]);
        assert_eq!(found, &[3, 4, 7]);
        let message = &messages[0];
        assert_eq!((message.uid, message.size, message.date), (7, 9, 1_771_329_600));
        assert_eq!(
            (message.headers.as_slice(), message.piece.as_slice()),
            (&b"abc"[..], &b"x"[..])
        );
        assert_eq!(stored, &[2]);
    }

    #[test]
    fn sets_are_ranges_of_bounded_length() {
        let text = |uids: &[u32]| {
            let sets = sets(uids.to_vec());
            sets.iter().map(|set| format!("{:?}", set.0.as_ref().len())).collect::<Vec<_>>()
        };
        assert_eq!(text(&[]), Vec::<String>::new());
        assert_eq!(text(&[0]), Vec::<String>::new());
        assert_eq!(text(&[3, 1, 2, 2, u32::MAX]), ["2"]);
        let odd: Vec<u32> = (0..450).map(|number| 2 * number + 1).collect();
        assert_eq!(text(&odd), ["200", "200", "50"]);
    }

    /// An answer with bytes put in, replaced, or its end cut off.
    fn changed(said: &str, places: &[(usize, Option<u8>, bool)]) -> Vec<u8> {
        let mut bytes = said.as_bytes().to_vec();
        for (place, byte, inserts) in places {
            let place = place % (bytes.len() + 1);
            match byte {
                Some(byte) if *inserts => bytes.insert(place, *byte),
                Some(byte) if place < bytes.len() => bytes[place] = *byte,
                _ => bytes.truncate(place),
            }
        }
        bytes
    }

    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![any::<u8>(), proptest::sample::select(b"(){}[]<>\"\\*% \r\n0129+".to_vec())]
    }

    fn change() -> impl Strategy<Value = (usize, Option<u8>, bool)> {
        (any::<usize>(), proptest::option::weighted(0.9, byte()), any::<bool>())
    }

    /// Without the end of a command there is no answer to it.
    fn check(said: &[u8], call: Call) -> std::result::Result<(), TestCaseError> {
        let answer = play(said, call);
        let has_end = said.to_ascii_lowercase().windows(3).any(|bytes| bytes == b"s1 ");
        prop_assert!(answer.is_err() || has_end);
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn any_bytes_end_a_call(said in vec(byte(), 0..200), call in 0..5usize) {
            check(&said, calls().swap_remove(call).0)?;
        }

        #[test]
        fn changed_answers_end_a_call(call in 0..5usize, changes in vec(change(), 0..6)) {
            let (call, said) = calls().swap_remove(call);
            check(&changed(said, &changes), call)?;
        }
    }
}
