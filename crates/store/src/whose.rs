use crate::statement::Statement;

/// Of whose services a statement reads lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whose<'a> {
    /// Of all, whoever claims them.
    Anyones,
    /// Of those that nobody claims.
    Nobodys,
    /// Of those that this instance claims.
    Of(&'a str),
}

impl<'a> Whose<'a> {
    /// What is added to the name of a statement, where its text is another.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Anyones | Self::Nobodys => "",
            Self::Of(_) => "_claimed",
        }
    }

    /// The condition on `lane`, to follow other conditions.
    pub(crate) fn condition(self, lane: &str) -> String {
        // A query of its own for each lane: a planner would make a join of `exists`, and might begin
        // with all services of the claimant.
        let claim = |claimant: &str| {
            format!(
                " and (
                     select c.claimant from service_id_claims c
                     where c.service_id = {lane}.service_id) {claimant}"
            )
        };
        match self {
            Self::Anyones => String::new(),
            Self::Nobodys => claim("is null"),
            Self::Of(_) => claim("= ?"),
        }
    }

    /// The value of the condition.
    pub(crate) fn bind(self, statement: Statement<'a>) -> Statement<'a> {
        match self {
            Self::Anyones | Self::Nobodys => statement,
            Self::Of(instance) => statement.text(instance),
        }
    }
}
