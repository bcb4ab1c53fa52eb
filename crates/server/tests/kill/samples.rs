//! Samples by the protocols of other senders, and how these hear that they were
//! taken.

use crate::http::protobuf::{field, labels, sample};
use crate::kill::connection::{Connection, Protocol};
use crate::kill::model::{Answer, Step};
use crate::kill::writer::Writer;
use std::io;

impl Writer {
    /// Sends some samples and waits until they are taken or refused.
    pub(crate) fn write_samples(&mut self, connection: &mut Connection) -> io::Result<()> {
        let mut samples = Vec::new();
        for _ in 0..1 + self.random.below(100) {
            let at = self.random.below(self.kept.len() as u64) as usize;
            let (timestamp, value) = (self.timestamp(), self.value());
            let series = &mut self.kept[at].series;
            let policy = series.policy;
            series.send(Step::Put {
                at: timestamp,
                value,
                policy,
            });
            samples.push((at, timestamp, value));
        }
        let refused = match self.protocol {
            Protocol::Influx => self.post_lines(connection, &samples)?,
            Protocol::RemoteWrite => self.post_message(connection, &samples)?,
            _ => self.put_lines(connection, &samples)?,
        };
        let mut expected = 0;
        for (at, ..) in samples {
            let (_, answer) = self.kept[at].series.acknowledge();
            expected += usize::from(answer == Answer::Refused);
        }
        let name = &self.name;
        match self.protocol {
            // It names series, not samples.
            Protocol::RemoteWrite => assert_eq!(refused > 0, expected > 0, "{name}"),
            _ => assert_eq!(refused, expected, "refused of {name}"),
        }
        Ok(())
    }

    fn post_lines(
        &self,
        connection: &mut Connection,
        samples: &[(usize, u64, f64)],
    ) -> io::Result<usize> {
        let name = &self.name;
        let line = |(at, timestamp, value): &(usize, u64, f64)| {
            format!("sent,writer={name},at={at} v={value} {timestamp}\n")
        };
        let body: String = samples.iter().map(line).collect();
        let body = body.as_bytes();
        let (status, text) = post(connection, "/write?precision=ms", "", body)?;
        let dropped = text.split("\"dropped\":").nth(1);
        match (status, dropped) {
            (204, _) => Ok(0),
            (400, Some(rest)) => {
                let number = rest.split(|c: char| !c.is_ascii_digit()).next();
                Ok(number.unwrap().parse().unwrap())
            }
            _ => panic!("{status} {text}"),
        }
    }

    fn post_message(
        &self,
        connection: &mut Connection,
        samples: &[(usize, u64, f64)],
    ) -> io::Result<usize> {
        let series = |(at, timestamp, value): &(usize, u64, f64)| {
            let at = at.to_string();
            let labels = labels(&[("__name__", "sent_v"), ("at", &at), ("writer", &self.name)]);
            field(1, &[labels, sample(*value, *timestamp)].concat())
        };
        let message: Vec<u8> = samples.iter().flat_map(series).collect();
        let body = snap::raw::Encoder::new().compress_vec(&message).unwrap();
        let head = "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf\r\n";
        let (status, text) = post(connection, "/api/v1/write", head, &body)?;
        match status {
            204 => Ok(0),
            400 => Ok(1),
            _ => panic!("{status} {text}"),
        }
    }

    fn put_lines(
        &self,
        connection: &mut Connection,
        samples: &[(usize, u64, f64)],
    ) -> io::Result<usize> {
        let name = &self.name;
        let line = |(at, timestamp, value): &(usize, u64, f64)| {
            format!("put sent_v {timestamp} {value} writer={name} at={at}\n")
        };
        let lines: String = samples.iter().map(line).collect();
        // Its answer comes behind those to the lines before.
        connection.send((lines + "version\n").as_bytes())?;
        let mut refused = 0;
        loop {
            let line = connection.line()?;
            match line.starts_with("put: illegal argument: sent_v{") {
                true => refused += 1,
                false if line.starts_with("latewood ") => return Ok(refused),
                false => panic!("{line}"),
            }
        }
    }
}

fn post(
    connection: &mut Connection,
    path: &str,
    head: &str,
    body: &[u8],
) -> io::Result<(u16, String)> {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{head}\r\n");
    connection.send(&[head.as_bytes(), body].concat())?;
    connection.answer()
}
