//! The connection of one caller: it comes from the pool, runs the caller's commands and goes back.

use std::future::Future;
use std::time::Duration;

use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

use super::pool::{self, Key};
use super::{Answer, Call, Connection};
use crate::net::{Fault, Kind, Login, Result, Server};

/// The time that a caller may take between two commands.
const PAUSE: Duration = Duration::from_secs(60);

/// The time that a kept connection has to show that it still works.
const CHECK: Duration = Duration::from_secs(5);

pub type Sender<R> = UnboundedSender<Message<R>>;

/// `R` takes the answer, see [`Reply`].
pub enum Message<R> {
    Call(Call, Duration, R),
    /// The caller needs the connection no more. Without this message, it is closed.
    Leave,
}

pub trait Reply: Send + 'static {
    fn opened(self, result: Result<()>);
    fn answered(self, result: Result<Answer>);
}

/// The end to send commands to, and the work, which ends with the session.
pub fn session<R: Reply>(
    server: Server,
    login: Login,
    limit: Duration,
    reply: R,
) -> (Sender<R>, impl Future<Output = ()> + Send) {
    let (sender, receiver) = unbounded_channel();
    (sender, serve(server, login, limit, reply, receiver))
}

async fn serve<R: Reply>(
    server: Server,
    login: Login,
    limit: Duration,
    reply: R,
    mut receiver: UnboundedReceiver<Message<R>>,
) {
    let key = Key::new(&server, &login);
    let opening = async {
        let permit = pool::permit(&key).await?;
        // A server may have closed a kept connection.
        while let Some(mut connection) = pool::take(&key) {
            if let Ok(Ok(())) = timeout(CHECK, connection.check()).await {
                return Ok((permit, connection));
            }
        }
        Ok((permit, Connection::open(&server, &login).await?))
    };
    let opened = timeout(limit, opening).await.unwrap_or_else(|_| Err(too_late()));
    let (permit, connection) = match opened {
        Ok(opened) => {
            reply.opened(Ok(()));
            opened
        }
        Err(fault) => return reply.opened(Err(fault)),
    };
    let mut connection = Some(connection);
    while let Ok(Some(message)) = timeout(PAUSE, receiver.recv()).await {
        match message {
            Message::Call(call, limit, reply) => match connection.take() {
                Some(mut open) => {
                    let answered = timeout(limit, open.call(call)).await;
                    let result = answered.unwrap_or_else(|_| Err(too_late()));
                    // After other failures the server's next answer may be to this call.
                    if result.as_ref().err().is_none_or(Fault::keeps_connection) {
                        connection = Some(open);
                    }
                    reply.answered(result);
                }
                None => {
                    let text = "the connection was closed after an earlier failure";
                    reply.answered(Err(Fault::new(Kind::Closed, text)));
                }
            },
            Message::Leave => {
                if let Some(connection) = connection.take() {
                    pool::put(key, connection);
                }
                break;
            }
        }
    }
    drop(permit);
}

fn too_late() -> Fault {
    Fault::new(Kind::Timeout, "the server did not answer in time")
}
