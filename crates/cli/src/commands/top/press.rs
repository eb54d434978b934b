//! The actions of keys.

use super::{
    key::Key,
    view::{Input, Pane, Request, Subject, Under, Verb, View},
};
use crate::commands::printable::is_printable;

/// The action after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    Quit,
    Request(Request),
}

/// The keys, and what each does, as the help shows it.
pub(super) const KEYS: [(&str, &str); 12] = [
    ("Up, k", "select the entry above, or scroll up"),
    ("Down, j", "select the entry below, or scroll down"),
    ("PageUp, PageDown", "the same by a page"),
    ("Home, End", "the first and the last entry"),
    ("s", "sort the services by the next column"),
    ("/", "list only what contains a text; Esc ends the filter"),
    ("p", "pause or resume the selected service; asks for a reason"),
    ("e, Enter", "explain why the selected service or batch waits"),
    ("h", "the held batches and why, and back to the services"),
    ("?", "this help"),
    ("Esc", "leave a question or a text; in a list, end the filter"),
    ("q, Ctrl-C", "quit"),
];

const LONGEST_INPUT: usize = 200;

impl View {
    pub(super) fn press(&mut self, key: Key) -> Effect {
        if key == Key::Interrupt {
            return Effect::Quit;
        }
        if let Some(input) = self.input.take() {
            return self.type_key(input, key);
        }
        self.message = None;
        match (&mut self.pane, key) {
            (_, Key::Character('q')) => return Effect::Quit,
            (_, Key::Character('?')) => self.toggle_help(),
            (Pane::Explanation { .. } | Pane::Help { .. }, key) => self.press_in_text(&key),
            (_, Key::Escape) => self.filter.clear(),
            (_, Key::Character('h')) => self.toggle_held(),
            (_, Key::Character('/')) => {
                self.input = Some(Input::Filter { before: self.filter.clone() });
            }
            (_, Key::Character('e') | Key::Enter) => return self.explain(),
            (Pane::Services, Key::Character('s')) => self.sort = self.sort.next(),
            (Pane::Services, Key::Character('p')) => self.ask_for_reason(),
            (_, key) => self.select(&key),
        }
        Effect::None
    }

    fn type_key(&mut self, input: Input, key: Key) -> Effect {
        match input {
            Input::Filter { before } => {
                self.type_filter(before, key);
                Effect::None
            }
            Input::Reason { verb, service, text } => self.type_reason(verb, service, text, key),
        }
    }

    fn type_filter(&mut self, before: String, key: Key) {
        match key {
            Key::Enter => return,
            Key::Escape => {
                self.filter = before;
                return;
            }
            key => edit(&mut self.filter, key),
        }
        self.input = Some(Input::Filter { before });
    }

    fn type_reason(&mut self, verb: Verb, service: String, mut text: String, key: Key) -> Effect {
        let has_reason = !text.trim().is_empty();
        match key {
            Key::Escape => {
                self.message = Some(("nothing was changed".to_owned(), false));
                return Effect::None;
            }
            Key::Enter if has_reason => {
                self.message = Some((format!("{}: {service}…", verb.name()), false));
                let reason = text.trim().to_owned();
                return Effect::Request(Request::Act { verb, service, reason });
            }
            Key::Enter => {}
            key => edit(&mut text, key),
        }
        self.input = Some(Input::Reason { verb, service, text });
        Effect::None
    }

    fn toggle_help(&mut self) {
        self.pane = match &self.pane {
            Pane::Help { under, .. } => under.pane(),
            pane => Pane::Help { scroll: 0, under: pane.list() },
        };
    }

    fn toggle_held(&mut self) {
        self.pane = match self.pane {
            Pane::Services => Pane::Held,
            _ => Pane::Services,
        };
    }

    fn press_in_text(&mut self, key: &Key) {
        if matches!(key, Key::Escape | Key::Enter | Key::Character('e' | 'h')) {
            self.pane = self.pane.list().pane();
            return;
        }
        let offset = self.offset(key);
        if let Pane::Explanation { scroll, .. } | Pane::Help { scroll, .. } = &mut self.pane {
            *scroll = scroll.saturating_add_signed(offset);
        }
    }

    fn explain(&mut self) -> Effect {
        let (of, under) = match self.pane {
            Pane::Held => (self.selected_held().map(Subject::of_held), Under::Held),
            _ => {
                let service = self.selected_service();
                (service.map(|service| Subject::Service(service.id.clone())), Under::Services)
            }
        };
        let Some(of) = of else { return Effect::None };
        self.pane = Pane::Explanation { of: of.clone(), explanation: None, scroll: 0, under };
        Effect::Request(Request::Explain(of))
    }

    fn ask_for_reason(&mut self) {
        let Some(service) = self.selected_service() else { return };
        let verb = if service.paused.is_some() { Verb::Resume } else { Verb::Pause };
        let service = service.id.clone();
        self.input = Some(Input::Reason { verb, service, text: String::new() });
    }

    fn select(&mut self, key: &Key) {
        let offset = self.offset(key);
        if self.pane == Pane::Held {
            let ids: Vec<String> =
                self.listed_held().iter().map(|batch| batch.id.clone()).collect();
            self.held.move_by(offset, &Vec::from_iter(ids.iter().map(String::as_str)));
        } else {
            let services = self.listed_services();
            let ids: Vec<String> = services.iter().map(|service| service.id.clone()).collect();
            self.services.move_by(offset, &Vec::from_iter(ids.iter().map(String::as_str)));
        }
    }

    /// How far a key moves.
    fn offset(&self, key: &Key) -> isize {
        let page = isize::try_from(self.rows.max(2) - 1).unwrap_or(1);
        match key {
            Key::Up | Key::Character('k') => -1,
            Key::Down | Key::Character('j') => 1,
            Key::PageUp => -page,
            Key::PageDown => page,
            Key::Home => -isize::MAX,
            Key::End => isize::MAX,
            _ => 0,
        }
    }
}

fn edit(text: &mut String, key: Key) {
    let typed = match key {
        Key::Backspace => {
            text.pop();
            return;
        }
        Key::Character(character) => character.to_string(),
        Key::Pasted(pasted) => pasted,
        _ => return,
    };
    let left = LONGEST_INPUT.saturating_sub(text.chars().count());
    text.extend(typed.chars().filter(|character| is_printable(*character)).take(left));
}

impl Pane {
    /// The list that is shown, or that is under a text.
    fn list(&self) -> Under {
        match self {
            Self::Services => Under::Services,
            Self::Held => Under::Held,
            Self::Explanation { under, .. } | Self::Help { under, .. } => *under,
        }
    }
}

impl Subject {
    fn of_held(batch: &super::reading::HeldReading) -> Self {
        Self::Batch { id: batch.id.clone(), service: batch.service.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::commands::top::{
        fixtures::{reading, view},
        view::{Answer, ReadFailure, Sort},
    };

    fn press(view: &mut View, keys: &str) -> Effect {
        let mut effect = Effect::None;
        for character in keys.chars() {
            let key = match character {
                '\r' => Key::Enter,
                '\u{1b}' => Key::Escape,
                character => Key::Character(character),
            };
            effect = view.press(key);
        }
        effect
    }

    fn listed(view: &View) -> Vec<&str> {
        view.listed_services().iter().map(|service| service.id.as_str()).collect()
    }

    #[test]
    fn oldest_service_is_first_and_columns_sort() {
        let mut view = view();
        assert_eq!(listed(&view), ["c::old", "c::held", "c::paused", "c::busy"]);
        let firsts = ["c::busy", "c::held", "c::busy", "c::busy", "c::old"];
        let sorts = [Sort::Rate, Sort::State, Sort::Service, Sort::Depth, Sort::Age];
        for (first, sort) in firsts.into_iter().zip(sorts) {
            press(&mut view, "s");
            assert_eq!((view.sort, listed(&view)[0]), (sort, first));
        }
    }

    #[test]
    fn filter_is_typed_ended_and_left() {
        let mut view = view();
        press(&mut view, "/PAused");
        assert_eq!(listed(&view), ["c::paused"]);
        press(&mut view, "\u{1b}");
        assert_eq!(listed(&view).len(), 4, "Esc leaves the question");
        press(&mut view, "/held\rs");
        assert_eq!((listed(&view), view.sort), (vec!["c::held"], Sort::Rate));
        view.press(Key::Character('/'));
        view.press(Key::Backspace);
        assert_eq!(view.filter, "hel");
        press(&mut view, "\r\u{1b}");
        assert_eq!(view.filter, "");
    }

    #[test]
    fn pause_needs_a_reason() {
        let mut view = view();
        assert_eq!(press(&mut view, "p\r  \r"), Effect::None);
        let pause = Request::Act {
            verb: Verb::Pause,
            service: "c::old".to_owned(),
            reason: "the update jq".to_owned(),
        };
        assert_eq!(press(&mut view, "the update jq\r"), Effect::Request(pause));
        assert_eq!(view.input, None);
        assert_eq!(press(&mut view, "pno\u{1b}"), Effect::None);
        assert_eq!(view.message, Some(("nothing was changed".to_owned(), false)));
        press(&mut view, "jjp");
        let Some(Input::Reason { verb, service, .. }) = &view.input else { panic!("{view:?}") };
        assert_eq!((*verb, service.as_str()), (Verb::Resume, "c::paused"));
    }

    #[test]
    fn refused_action_is_told() {
        let mut view = view();
        let result = Err("not allowed: the token lacks the scope operate".to_owned());
        let answer = Answer::Acted { verb: Verb::Pause, service: "c::old".to_owned(), result };
        view.apply(answer, Instant::now());
        let text = "c::old is not paused: not allowed: the token lacks the scope operate";
        assert_eq!(view.message, Some((text.to_owned(), true)));
    }

    #[test]
    fn selection_follows_its_service() {
        let mut view = view();
        press(&mut view, "j");
        assert_eq!(view.selected_service().map(|service| service.id.as_str()), Some("c::held"));
        press(&mut view, "s");
        assert_eq!(view.selected_service().map(|service| service.id.as_str()), Some("c::held"));
        view.press(Key::End);
        assert_eq!(view.selected_service().map(|it| it.id.as_str()), listed(&view).last().copied());
        view.press(Key::Home);
        assert_eq!(view.selected_service().map(|it| it.id.as_str()), Some(listed(&view)[0]));
    }

    #[test]
    fn service_and_held_batch_are_explained() {
        let mut view = view();
        let service = Subject::Service("c::old".to_owned());
        assert_eq!(press(&mut view, "e"), Effect::Request(Request::Explain(service)));
        assert_eq!(press(&mut view, "\u{1b}h"), Effect::None);
        assert_eq!(view.pane, Pane::Held);
        let batch = Subject::Batch { id: "5a".repeat(64), service: "c::held".to_owned() };
        assert_eq!(press(&mut view, "\r"), Effect::Request(Request::Explain(batch)));
        press(&mut view, "?");
        assert!(matches!(view.pane, Pane::Help { under: Under::Held, .. }));
        press(&mut view, "?h");
        assert_eq!(view.pane, Pane::Services);
    }

    #[test]
    fn late_explanation_is_not_shown() {
        let mut view = view();
        press(&mut view, "e\u{1b}je");
        let of = Subject::Service("c::old".to_owned());
        view.apply(Answer::Explanation { of, explanation: Err("late".to_owned()) }, Instant::now());
        assert!(matches!(view.pane, Pane::Explanation { explanation: None, .. }));
    }

    #[test]
    fn server_that_goes_away_keeps_its_last_values() {
        let mut view = view();
        let now = Instant::now();
        let failure = |text: &str| ReadFailure::NoAnswer(text.to_owned());
        view.apply(Answer::Reading(Err(failure("refused"))), now);
        view.apply(Answer::Reading(Err(failure("reset"))), now + Duration::from_secs(2));
        assert_eq!(view.failure, Some((failure("reset"), now)));
        assert_eq!(listed(&view).len(), 4);
        view.apply(Answer::Reading(Ok(Box::new(reading()))), now);
        assert_eq!(view.failure, None);
    }

    #[test]
    fn pasted_text_is_a_reason_and_no_keys() {
        let mut view = view();
        assert_eq!(view.press(Key::Pasted("pq".to_owned())), Effect::None);
        assert_eq!(view.input, None);
        press(&mut view, "p");
        assert_eq!(view.press(Key::Pasted("a\r\nq".to_owned())), Effect::None);
        let Some(Input::Reason { text, .. }) = &view.input else { panic!("{view:?}") };
        assert_eq!(text, "aq");
        assert_eq!(view.press(Key::Interrupt), Effect::Quit);
        assert_eq!(press(&mut view, "\u{1b}q"), Effect::Quit);
    }
}
