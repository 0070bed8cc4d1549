//! The words of a story, each with its form. The parser knows no others, and `docs/scenarios.md` has
//! them all.

/// Words that begin something: how each goes on, and which one a text is.
macro_rules! words {
    ($(#[$doc:meta])* $kind:ident { $($name:ident = $word:literal: $form:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $kind { $($name,)* }

        impl $kind {
            pub(super) const ALL: &[Self] = &[$(Self::$name,)*];

            pub(super) const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            pub(super) const fn form(self) -> &'static str {
                match self { $(Self::$name => $form,)* }
            }

            pub(super) fn of(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.word() == word.trim_end_matches(','))
            }

            /// All there are, for a sentence about a word that is none of them.
            pub(super) fn list() -> String {
                let forms: Vec<&str> = Self::ALL.iter().map(|known| known.form()).collect();
                forms.join(" | ")
            }
        }
    };
}

words! {
    /// What a line begins with.
    Statement {
        Protocol = "protocol": "protocol P [VARIANT]",
        Replicas = "replicas": "replicas N, quorum M",
        Latency = "latency": "latency MODEL",
        Durable = "durable": "durable",
        Agents = "agents": "agents, K entries per grant",
        Link = "link": "link X -> Y takes D",
        Every = "every": "every KIND [from X] [to Y] FATE",
        At = "at": "at T X DEED",
        End = "end": "end at T",
    }
}

words! {
    /// What somebody does.
    Deed {
        Asks = "asks": "asks for NAME[, WISH…]",
        Leaves = "leaves": "leaves NAME",
        Cancels = "cancels": "cancels NAME",
        Writes = "writes": "writes NAME",
        Crashes = "crashes": "crashes",
        Restarts = "restarts": "restarts [empty]",
        Forgets = "forgets": "forgets",
        Sleeps = "sleeps": "sleeps D",
    }
}

words! {
    /// What goes with a request.
    Wish {
        Stays = "stays": "stays D",
        Ttl = "ttl": "ttl D",
        Waits = "waits": "waits D",
        Tries = "tries": "tries",
        ToRead = "to-read": "to-read",
        Overstays = "overstays": "overstays D",
    }
}

words! {
    /// What becomes of a message.
    Fate {
        Lost = "is": "is lost",
        Takes = "takes": "takes D",
        Repeats = "repeats": "repeats after D",
    }
}

/// The form of everything that can be said.
pub fn forms() -> impl Iterator<Item = &'static str> {
    let statements = Statement::ALL.iter().map(|statement| statement.form());
    let deeds = Deed::ALL.iter().map(|deed| deed.form());
    let wishes = Wish::ALL.iter().map(|wish| wish.form());
    let fates = Fate::ALL.iter().map(|fate| fate.form());
    statements.chain(deeds).chain(wishes).chain(fates)
}
