use rustler::{Binary, Env, NifMap, Term};
use skillbook_bridge::encode::binary;

use crate::mime::build::{self, Draft, File};
use crate::mime::parse::{self, Mail};
use crate::mime::Mailbox;

/// A mail. The error is text.
#[rustler::nif(schedule = "DirtyCpu")]
fn mime_parse(raw: Binary) -> Result<Mail, String> {
    parse::parse(raw.as_slice())
}

/// The content of a part of a mail. The error is text.
#[rustler::nif(schedule = "DirtyCpu")]
fn mime_part<'a>(env: Env<'a>, raw: Binary<'a>, part: u32) -> Result<Term<'a>, String> {
    Ok(binary(env, parse::part(raw.as_slice(), part)?))
}

#[derive(NifMap)]
struct Fields<'a> {
    from: Option<Mailbox>,
    to: Vec<Mailbox>,
    cc: Vec<Mailbox>,
    bcc: Vec<Mailbox>,
    reply_to: Vec<Mailbox>,
    subject: String,
    date: i64,
    message_id: String,
    in_reply_to: Vec<String>,
    references: Vec<String>,
    text: String,
    html: Option<String>,
    attachments: Vec<Attachment<'a>>,
}

#[derive(NifMap)]
struct Attachment<'a> {
    name: String,
    r#type: String,
    charset: Option<String>,
    data: Binary<'a>,
}

/// The bytes of a mail. The error is text.
#[rustler::nif(schedule = "DirtyCpu")]
fn mime_build<'a>(env: Env<'a>, mail: Fields<'a>) -> Result<Term<'a>, String> {
    let attachments = mail
        .attachments
        .iter()
        .map(|file| File {
            name: file.name.clone(),
            r#type: file.r#type.clone(),
            charset: file.charset.clone(),
            data: file.data.as_slice(),
        })
        .collect();
    let draft = Draft {
        from: mail.from,
        to: mail.to,
        cc: mail.cc,
        bcc: mail.bcc,
        reply_to: mail.reply_to,
        subject: mail.subject,
        date: mail.date,
        message_id: mail.message_id,
        in_reply_to: mail.in_reply_to,
        references: mail.references,
        text: mail.text,
        html: mail.html,
        attachments,
    };
    Ok(binary(env, build::build(&draft)?))
}
