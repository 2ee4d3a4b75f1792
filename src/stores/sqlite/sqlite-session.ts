import { endOfTurn } from '../../core/calls-in-flight.ts'
import type { UsageStore } from '../../usage/usage-store.ts'
import type { BatchStore, FileStore } from '../file-store.ts'
import type { GatewayStore } from '../gateway-store.ts'
import { assertAmount, type Ledger } from '../ledger.ts'
import { MoneyRules } from '../money-rules.ts'
import type { Resolution } from '../resolution.ts'
import type { ConversationStore, ResponseStore } from '../response-store.ts'
import type { TaskStore } from '../task-store.ts'
import type { WebhookStore } from '../webhook-store.ts'
import { GroupCommit, type GroupCommitOptions, retryOnBusy } from './group-commit.ts'
import { SqliteBooks, type SqliteMoney } from './sqlite-books.ts'
import {
  type SqliteAccounts,
  type SqliteAudit,
  type SqliteJournal,
  type SqliteKeys,
  type SqliteSettings,
  type SqliteStored,
  sqliteAccounts,
  sqliteAudit,
  sqliteJournal,
  sqliteKeys,
  sqliteSettings,
  sqliteStored,
} from './sqlite-by-hand.ts'
import { type SqliteDatabase, SqliteStoreError } from './sqlite-database.ts'
import {
  type SqliteClaims,
  type SqliteInteractions,
  sqliteClaims,
  sqliteInteractions,
  sqlitePurge,
} from './sqlite-expiring.ts'
import {
  type SqliteBatches,
  type SqliteBlobSteps,
  type SqliteFiles,
  sqliteBatches,
  sqliteBlobSteps,
  sqliteBlobs,
  sqliteFiles,
} from './sqlite-files.ts'
import {
  type SqliteConversations,
  type SqliteResponses,
  sqliteConversations,
  sqliteResponses,
} from './sqlite-responses.ts'
import { type SqliteTasks, type SqliteWebhooks, sqliteTaskInsert, sqliteTasks, sqliteWebhooks } from './sqlite-tasks.ts'
import { type SqliteUsage, sqliteRecordInsert, sqliteUsage } from './sqlite-usage.ts'

/** Maximum number of purge steps per sweep: with 500 rows each, more than a busy gateway creates between two sweeps. */
const MAX_PURGE_STEPS = 40

/** Maximum number of records that one transaction adds to the sums: some milliseconds of the lock and of the event loop. */
const MAX_ADDED_PER_STEP = 500

/** Synchronous access to every table of an open database except that of holds. */
export interface SqliteTables {
  readonly accounts: SqliteAccounts
  readonly audit: SqliteAudit
  readonly journal: SqliteJournal
  readonly money: SqliteMoney
  readonly claims: SqliteClaims
  readonly keys: SqliteKeys
  readonly settings: SqliteSettings
  readonly interactions: SqliteInteractions
  readonly responses: SqliteResponses
  readonly conversations: SqliteConversations
  readonly tasks: SqliteTasks
  readonly webhooks: SqliteWebhooks
  readonly usage: SqliteUsage
  readonly files: SqliteFiles
  readonly blobs: SqliteBlobSteps
  readonly batches: SqliteBatches
  readonly stored: SqliteStored
  readonly purge: ReturnType<typeof sqlitePurge>
}

/** Open database with a current schema. */
export interface SqliteSession {
  /** Runs an operation in the next group, and resolves when it is durable. */
  write<Value>(operation: (tables: SqliteTables) => Value): Promise<Value>
  /** Moves money, which several operations of a group may write together. Without `isFlushed`, it resolves after the commit. */
  writeMoney<Value>(operation: (money: SqliteMoney) => Value, isFlushed?: boolean): Promise<Value>
  /** Reads committed data. */
  read<Value>(operation: (tables: SqliteTables) => Value): Promise<Value>
  /** Resolves when no write is waiting. */
  drained(): Promise<void>
}

/** Options of {@link sqliteSession}. */
export interface SqliteSessionOptions extends GroupCommitOptions {
  /** Clock that decides when holds expire. */
  readonly clock: 'database' | 'caller'
}

/** Prepares all statements on an open and migrated database. */
export function sqliteSession(database: SqliteDatabase, options: SqliteSessionOptions): SqliteSession {
  const insertTask = sqliteTaskInsert(database)
  const insertRecords = sqliteRecordInsert(database)
  const webhooks = sqliteWebhooks(database)
  // The database is a file on this machine, so its clock is the machine's.
  const timeOf = options.clock === 'caller' ? (callerMs: number) => callerMs : () => Date.now()
  const claims = sqliteClaims(database, timeOf)
  const conversations = sqliteConversations(database)
  const responses = sqliteResponses(database, conversations)
  const books = new SqliteBooks(database, { claims, insertTask, insertRecords, timeOf })
  const money = new MoneyRules(books)
  const purge = sqlitePurge(database)
  const tables: SqliteTables = {
    accounts: sqliteAccounts(database),
    audit: sqliteAudit(database),
    journal: sqliteJournal(database),
    money,
    claims,
    keys: sqliteKeys(database),
    settings: sqliteSettings(database),
    interactions: sqliteInteractions(database),
    responses,
    conversations,
    tasks: sqliteTasks(database, { money, claims, insertTask, webhooks, responses }),
    webhooks,
    usage: sqliteUsage(database, insertRecords),
    files: sqliteFiles(database),
    blobs: sqliteBlobSteps(database),
    batches: sqliteBatches(database),
    stored: sqliteStored(database),
    purge: (nowMs) => purge(timeOf(nowMs)),
  }
  const group = new GroupCommit(database, options, books)
  return {
    write: (operation) =>
      group.write(() => {
        // It may read data that earlier operations of the group have buffered.
        books.flush()
        return operation(tables)
      }),
    writeMoney: (operation, isFlushed) => group.write(() => operation(money), isFlushed),
    read: (operation) => retryOnBusy(() => operation(tables), options),
    drained: () => group.drained(),
  }
}

/** Implements the contracts on a session. Amounts are checked before anything is queued. */
export function storesOn(session: () => SqliteSession): Omit<GatewayStore, 'start' | 'close'> {
  return {
    ledger: ledgerOn(session),
    audit: {
      add: async (entry) => session().write(({ audit }) => audit.add(entry)),
      list: async (query) => session().read(({ audit }) => audit.list(query)),
    },
    settings: {
      read: async () => session().read(({ settings }) => settings.read()),
      write: async (given) => session().write(({ settings }) => settings.write(given)),
    },
    keys: {
      findByHash: async (hash) => session().read(({ keys }) => keys.findByHash(hash)),
      find: async (keyId) => session().read(({ keys }) => keys.find(keyId)),
      async insert(record) {
        if (record.spendingCap !== undefined) assertAmount(record.spendingCap.amount)
        return session().write(({ keys }) => keys.insert(record))
      },
      list: async (accountId) => session().read(({ keys }) => keys.list(accountId)),
      page: async (query) => session().read(({ keys }) => keys.page(query)),
      async update(keyId, change) {
        if (change.spendingCap != null) assertAmount(change.spendingCap.amount)
        return session().write(({ keys }) => keys.update(keyId, change))
      },
      revoke: async (keyId, nowMs) => session().write(({ keys }) => keys.revoke(keyId, nowMs)),
      expire: async (keyId, expiresAtMs) => session().write(({ keys }) => keys.expire(keyId, expiresAtMs)),
    },
    idempotency: {
      claim: async (claim, nowMs) => session().write(({ claims }) => claims.claim(claim, nowMs)),
      complete: async (claim, answer, nowMs) =>
        session().write(({ claims }) => claims.complete(claim, answer, claims.endOf(claim.expiresAtMs, nowMs))),
      release: async (claim) => session().write(({ claims }) => claims.release(claim)),
    },
    interactions: {
      save: async (record) => session().write(({ interactions }) => interactions.save(record)),
      find: async (accountId, id, nowMs) =>
        session().read(({ interactions }) => interactions.find(accountId, id, nowMs)),
    },
    responses: responsesOn(session),
    conversations: conversationsOn(session),
    tasks: tasksOn(session),
    webhooks: webhooksOn(session),
    usage: usageOn(session),
    files: filesOn(session),
    blobs: sqliteBlobs(
      async (step) => session().write(({ blobs }) => step(blobs)),
      async (step) => session().read(({ blobs }) => step(blobs)),
    ),
    batches: batchesOn(session),
    stored: async (accountId, kind, nowMs) => session().read(({ stored }) => stored(accountId, kind, nowMs)),
  }
}

function filesOn(session: () => SqliteSession): FileStore {
  return {
    save: async (file) => session().write(({ files }) => files.save(file)),
    find: async (accountId, id, nowMs) => session().read(({ files }) => files.find(accountId, id, nowMs)),
    list: async (accountId, query, nowMs) => session().read(({ files }) => files.list(accountId, query, nowMs)),
    delete: async (accountId, id) => session().write(({ files }) => files.delete(accountId, id)),
    purge: async (nowMs, limit) => session().write(({ files }) => files.purge(nowMs, limit)),
  }
}

function batchesOn(session: () => SqliteSession): BatchStore {
  return {
    add: async (batchId, outcome, expiresAtMs) =>
      session().write(({ batches }) => batches.add(batchId, outcome, expiresAtMs)),
    tally: async (batchId) => session().read(({ batches }) => batches.tally(batchId)),
    page: async (batchId, afterLine, limit) => session().read(({ batches }) => batches.page(batchId, afterLine, limit)),
    lines: async (batchId, afterLine, limit) =>
      session().read(({ batches }) => batches.lines(batchId, afterLine, limit)),
    delete: async (batchId, limit) => session().write(({ batches }) => batches.delete(batchId, limit)),
    purge: async (nowMs, limit) => session().write(({ batches }) => batches.purge(nowMs, limit)),
  }
}

function responsesOn(session: () => SqliteSession): ResponseStore {
  return {
    save: async (turn) => session().write(({ responses }) => responses.save(turn)),
    find: async (accountId, id, nowMs) => session().read(({ responses }) => responses.find(accountId, id, nowMs)),
    conversation: async (accountId, id, nowMs) =>
      session().read(({ responses }) => responses.conversation(accountId, id, nowMs)),
    findByItems: async (accountId, itemIds, nowMs) =>
      session().read(({ responses }) => responses.findByItems(accountId, itemIds, nowMs)),
    knownItems: async (accountId, itemIds, nowMs) =>
      session().read(({ responses }) => responses.knownItems(accountId, itemIds, nowMs)),
    delete: async (accountId, id) => session().write(({ responses }) => responses.delete(accountId, id)),
  }
}

function conversationsOn(session: () => SqliteSession): ConversationStore {
  return {
    create: async (conversation, items) =>
      session().write(({ conversations }) => conversations.create(conversation, items)),
    find: async (accountId, id, nowMs) =>
      session().read(({ conversations }) => conversations.find(accountId, id, nowMs)),
    update: async (accountId, id, change, nowMs) =>
      session().write(({ conversations }) => conversations.update(accountId, id, change, nowMs)),
    add: async (accountId, id, addition, nowMs) =>
      session().write(({ conversations }) => conversations.add(accountId, id, addition, nowMs)),
    history: async (accountId, id, nowMs, untilPosition) =>
      session().read(({ conversations }) => conversations.history(accountId, id, nowMs, untilPosition)),
    page: async (accountId, id, page, nowMs) =>
      session().read(({ conversations }) => conversations.page(accountId, id, page, nowMs)),
    item: async (accountId, id, itemId, nowMs) =>
      session().read(({ conversations }) => conversations.item(accountId, id, itemId, nowMs)),
    deleteItem: async (accountId, id, itemId, nowMs) =>
      session().write(({ conversations }) => conversations.deleteItem(accountId, id, itemId, nowMs)),
    delete: async (accountId, id) => session().write(({ conversations }) => conversations.delete(accountId, id)),
  }
}

function ledgerOn(session: () => SqliteSession): Ledger {
  return {
    async createAccount(account, nowMs) {
      if (account.spendingCap !== undefined) assertAmount(account.spendingCap.amount)
      if (account.creditLimit !== undefined) assertAmount(account.creditLimit)
      return session().write(({ accounts }) => accounts.createAccount(account, nowMs))
    },
    async updateAccount(accountId, change) {
      if (change.spendingCap != null) assertAmount(change.spendingCap.amount)
      if (change.creditLimit != null) assertAmount(change.creditLimit)
      return session().write(({ accounts }) => accounts.updateAccount(accountId, change))
    },
    account: async (accountId) => session().read(({ accounts }) => accounts.account(accountId)),
    listAccounts: async (query) => session().read(({ accounts }) => accounts.listAccounts(query)),
    credit: async (credit, nowMs) => session().write(({ money }) => money.credit(credit, nowMs)),
    adjust: async (adjustment, nowMs) => session().write(({ money }) => money.adjust(adjustment, nowMs)),
    refund: async (refund, nowMs) => session().write(({ money }) => money.refund(refund, nowMs)),
    lines: async (query) => session().read(({ journal }) => journal.lines(query)),
    sums: async (range) => session().read(({ journal }) => journal.sums(range)),
    openHolds: async (query) => session().read(({ journal }) => journal.openHolds(query)),
    spending: async (accountId, keyIds) => session().read(({ journal }) => journal.spending(accountId, keyIds)),
    expireCredits: async (nowMs, limit) => session().write(({ money }) => money.expireCredits(nowMs, limit)),
    reserve: (reservation, nowMs) =>
      asAsync(() => {
        assertAmount(reservation.amount)
        // A hold alone need not survive a power failure, because its process does not either. A task outlives it, and so does a claim.
        const isFlushed = reservation.task !== undefined || reservation.claim !== undefined
        return session().writeMoney((money) => money.reserve(reservation, nowMs), isFlushed)
      }),
    enlarge: (holdId, amount, nowMs) =>
      asAsync(() => {
        assertAmount(amount)
        // The hold of a task outlives the process.
        return session().writeMoney((money) => money.enlarge(holdId, amount, nowMs), true)
      }),
    settle: (settlement, nowMs) =>
      asAsync(() => {
        assertAmount(settlement.amount)
        const settled = session().writeMoney((money) => money.settle(settlement, nowMs))
        if (settlement.record === undefined) return settled
        return settled.catch((fault) =>
          withoutRecord(fault, () =>
            session().writeMoney((money) => money.settle({ ...settlement, record: undefined }, nowMs)),
          ),
        )
      }),
    void: async (holdId, nowMs) => session().writeMoney((money) => money.void(holdId, nowMs)),
    async expire(nowMs, limit) {
      const count = await session().writeMoney((money) => money.expire(nowMs, limit))
      // Separate steps, so that other writers and the event loop run in between.
      for (let step = 0; step < MAX_PURGE_STEPS; step++) {
        if (await session().write(({ purge }) => purge(nowMs))) break
      }
      return count
    },
    entries: async (accountId, limit) => session().read(({ accounts }) => accounts.entries(accountId, limit)),
  }
}

/** Reads before it leases and purges, so that it does not block other writers without work. */
function tasksOn(session: () => SqliteSession): TaskStore {
  return {
    insert: async (task) => session().write(({ tasks }) => tasks.insert(task)),
    find: async (accountId, id) => session().read(({ tasks }) => tasks.find(accountId, id)),
    list: async (accountId, page) => session().read(({ tasks }) => tasks.list(accountId, page)),
    listAll: async (query) => session().read(({ tasks }) => tasks.listAll(query)),
    async change(change, nowMs) {
      if (change.resolve?.kind === 'settle') assertAmount(change.resolve.amount)
      return session().write(({ tasks }) => tasks.change(change, nowMs))
    },
    discard: async (id, claim, nowMs) => session().write(({ tasks }) => tasks.discard(id, claim, nowMs)),
    async leaseDue(query) {
      const isAnyDue = await session().read(({ tasks }) => tasks.isAnyDue(query))
      return isAnyDue ? session().write(({ tasks }) => tasks.leaseDue(query)) : []
    },
    credentialIds: async () => session().read(({ tasks }) => tasks.credentialIds()),
    async leaseExpired(query) {
      const isAnyExpired = await session().read(({ tasks }) => tasks.isAnyExpired(query.nowMs))
      return isAnyExpired ? session().write(({ tasks }) => tasks.leaseExpired(query)) : []
    },
    async purge(query) {
      const isAny = await session().read(({ tasks }) => tasks.isAnyToPurge(query.changedUntilMs))
      return isAny ? session().write(({ tasks }) => tasks.purge(query)) : 0
    },
  }
}

function webhooksOn(session: () => SqliteSession): WebhookStore {
  return {
    async leaseDue(query) {
      const isAnyDue = await session().read(({ webhooks }) => webhooks.isAnyDue(query.nowMs))
      return isAnyDue ? session().write(({ webhooks }) => webhooks.leaseDue(query)) : []
    },
    record: async (id, outcome) => session().write(({ webhooks }) => webhooks.record(id, outcome)),
    release: async (ids) => session().write(({ webhooks }) => webhooks.release(ids)),
    list: async (accountId, taskId) => session().read(({ webhooks }) => webhooks.list(accountId, taskId)),
    listAll: async (query) => session().read(({ webhooks }) => webhooks.listAll(query)),
    resend: async (accountId, id, nowMs) => session().write(({ webhooks }) => webhooks.resend(accountId, id, nowMs)),
    secrets: async (accountId, nowMs) => session().read(({ webhooks }) => webhooks.secrets(accountId, nowMs)),
    ensureSecret: async (accountId, secret) =>
      session().write(({ webhooks }) => webhooks.ensureSecret(accountId, secret)),
    replaceSecret: async (accountId, secret, overlapUntilMs, nowMs) =>
      session().write(({ webhooks }) => webhooks.replaceSecret(accountId, secret, overlapUntilMs, nowMs)),
  }
}

/**
 * Repeats a settlement without its record, because a record must not prevent a charge. Rethrows faults of the database that would
 * stop the second one too.
 */
async function withoutRecord(fault: unknown, again: () => Promise<Resolution>): Promise<Resolution> {
  if (fault instanceof SqliteStoreError && fault.fault !== 'failed') throw fault
  return { ...(await again()), recordFault: fault }
}

/** Queries run in steps, so that other work runs in between; so do roll-ups. */
function usageOn(session: () => SqliteSession): UsageStore {
  return {
    write: async (records) => session().write(({ usage }) => usage.write(records)),
    rollUp: async (limit, nowMs) =>
      session().write(({ usage }) => usage.rollUp(Math.min(limit, MAX_ADDED_PER_STEP), nowMs)),
    async series(query) {
      const series = await session().read(({ usage }) => usage.series(query))
      let hasMore: boolean
      do {
        hasMore = await session().read(() => series.step())
        await endOfTurn()
      } while (hasMore)
      return series.rows()
    },
    records: async (query) => session().read(({ usage }) => usage.records(query)),
    verify: async (range) => session().read(({ usage }) => usage.verify(range)),
    rebuild: async (range) => session().write(({ usage }) => usage.rebuild(range)),
    forget: async (retention) => session().write(({ usage }) => usage.forget(retention)),
  }
}

/** Like an `async` function, without the extra promise and microtasks around the returned one. */
function asAsync<Value>(run: () => Promise<Value>): Promise<Value> {
  try {
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}
