import { assertAmount } from '../amount.ts'
import type { GatewayStore } from '../gateway-store.ts'
import type { InteractionStore } from '../interaction-store.ts'
import type { TaskStore } from '../task-store.ts'
import type { WebhookStore } from '../webhook-store.ts'
import type { SqliteSession } from './sqlite-session.ts'

/** Tasks, messages and conversations on a session. Amounts are checked before anything is queued. */
export function sqliteTaskStores(
  session: () => SqliteSession,
): Pick<GatewayStore, 'interactions' | 'tasks' | 'webhooks'> {
  return { interactions: interactionsOn(session), tasks: tasksOn(session), webhooks: webhooksOn(session) }
}

function interactionsOn(session: () => SqliteSession): InteractionStore {
  return {
    save: async (record) => session().write(({ interactions }) => interactions.save(record)),
    find: async (accountId, id, nowMs) => session().read(({ interactions }) => interactions.find(accountId, id, nowMs)),
  }
}

/** What is taken is looked for first: while there is nothing, no other writer waits for this one. */
function tasksOn(session: () => SqliteSession): TaskStore {
  return {
    insert: async (task) => session().write(({ insertTask }) => insertTask(task)),
    find: async (accountId, id) => session().read(({ tasks }) => tasks.find(accountId, id)),
    list: async (accountId, page) => session().read(({ tasks }) => tasks.list(accountId, page)),
    async change(change, nowMs) {
      if (change.resolve?.kind === 'settle') assertAmount(change.resolve.amount)
      return session().write(({ tasks }) => tasks.change(change, nowMs))
    },
    discard: async (id, claim, nowMs) => session().write(({ tasks }) => tasks.discard(id, claim, nowMs)),
    async takeDue(query) {
      const isAnyDue = await session().read(({ taskTaking }) => taskTaking.isAnyDue(query))
      return isAnyDue ? session().write(({ taskTaking }) => taskTaking.takeDue(query)) : []
    },
    async takeOverdue(query) {
      const isAnyOverdue = await session().read(({ taskTaking }) => taskTaking.isAnyOverdue(query.nowMs))
      return isAnyOverdue ? session().write(({ taskTaking }) => taskTaking.takeOverdue(query)) : []
    },
    async forget(query) {
      const isAny = await session().read(({ tasks }) => tasks.isAnyToForget(query.changedUntilMs))
      return isAny ? session().write(({ tasks }) => tasks.forget(query)) : 0
    },
  }
}

function webhooksOn(session: () => SqliteSession): WebhookStore {
  return {
    async takeDue(query) {
      const isAnyDue = await session().read(({ webhooks }) => webhooks.isAnyDue(query.nowMs))
      return isAnyDue ? session().write(({ webhooks }) => webhooks.takeDue(query)) : []
    },
    record: async (id, outcome) => session().write(({ webhooks }) => webhooks.record(id, outcome)),
    list: async (accountId, taskId) => session().read(({ webhooks }) => webhooks.list(accountId, taskId)),
    resend: async (accountId, id, nowMs) => session().write(({ webhooks }) => webhooks.resend(accountId, id, nowMs)),
    secrets: async (accountId, nowMs) => session().read(({ webhooks }) => webhooks.secrets(accountId, nowMs)),
    replaceSecret: async (accountId, secret, overlapUntilMs) =>
      session().write(({ webhooks }) => webhooks.replaceSecret(accountId, secret, overlapUntilMs)),
  }
}
