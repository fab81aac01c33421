//! A question to a shard, from when it came to when it is answered.

use super::messages::{About, Question};
use crate::dataflow::control::Cause;
use crate::dataflow::query::context::Context;
use crate::query::plan::{Plan, Planner};

/// A question to this shard, and the plan of all its stages where an engine has that of the first.
#[derive(Debug)]
pub(crate) struct ShardRequest {
    pub(crate) question: Question,
    pub(crate) whole: Option<Plan>,
}

impl ShardRequest {
    /// The plan of its first stage, weighed by the frequencies in all shards.
    pub(crate) fn plan(&mut self, context: &Context, planner: &mut Planner) -> Result<Plan, Cause> {
        let Question { floor, about, .. } = &self.question;
        let About { generation, query, dfs, .. } = &**about;
        let wanted = self.question.wanted(context.algorithms)?;
        let snapshot = context.snapshot_of(*generation)?.under(query.filter.as_ref())?;
        let mut plan = planner.plan(&snapshot, wanted, &query.text)?;
        plan.list(query.listing(&snapshot.generation().manifest().settings)?);
        if dfs.len() != plan.terms().len() {
            return Err("two processes find different terms in a query".into());
        }
        let most = u64::from(snapshot.whole().documents);
        plan.weigh(dfs.iter().map(|&df| df.min(most) as u32));
        plan.raise(*floor);
        self.whole = plan.split_stages();
        Ok(plan)
    }
}
