import type { SqlDialect, SqlParameter, SqlRunner, SqlWork } from '../sql/statements.ts'
import type { SqlRow } from '../sql-rows.ts'
import { isStorable, type PostgresConnection, type PostgresSession } from './postgres-connection.ts'

/** Columns of integers and floats, read as text, because a host may have configured its client library to read them as floats. */
const IS_NUMBER = /(_ms|_amount|_length|_count|_position|^due|^charged|^position|^number|^value)$/

/** Largest value of a column of 32 bits. */
const MAX_INTEGER = 2 ** 31 - 1

/** Returns the dialect of PostgreSQL. */
export function postgresDialect(schema: string): SqlDialect {
  return {
    table: (name) => `${schema}.${name}`,
    columns: (names, alias) =>
      names
        .split(', ')
        .map((name) => `${alias === undefined ? '' : `${alias}.`}${name}${IS_NUMBER.test(name) ? '::text' : ''}`)
        .join(', '),
    isIn: (column, list) => `${column} = ANY (${list}::text[])`,
    // As an array, because a planner may run a subquery again for each row, and so lock more rows than its limit.
    isInQuery: (column, query) => `${column} = ANY (ARRAY(${query}))`,
    list: (parameter) => `unnest(${parameter}::text[]) AS i(value)`,
    inOrder: (column) => `${column} COLLATE "C"`,
    index: () => '',
    forUpdate: 'FOR UPDATE',
    skipLocked: 'FOR UPDATE SKIP LOCKED',
    canChangeInWith: true,
    lock: (name) => [['SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`${schema}:${name}`]]],
    rowName: () => 'ctid',
    isCounted: (mark) => `tx < ${mark}`,
    links: {
      conversation: { parent: ['account_id', 'id'], item: ['account_id', 'conversation_id'] },
      response: { parent: ['id'], item: ['response_id'] },
    },
    attempts: {
      read: 'array_to_json(attempts)::text',
      add: (attempt, max) => `(attempts || ${attempt}::text)[greatest(1, cardinality(attempts) + 2 - ${max}):]`,
    },
    // `octet_length` reads no large values.
    stored: {
      idempotencyKeys: [`${schema}.claims`, 'octet_length(answer_body)'],
      responses: [`${schema}.responses`, 'octet_length(input) + octet_length(response)'],
      conversations: [`${schema}.conversations`, 'byte_length'],
      files: [`${schema}.files`, 'byte_length'],
      tasks: [`${schema}.tasks`, 'octet_length(details)'],
      webhookSecrets: [`${schema}.webhook_secrets`, 'octet_length(secret)'],
    },
  }
}

/** Returns the driver that runs work on the server. */
export function postgresRunner({ run, transaction }: PostgresConnection): SqlRunner {
  const alone: SqlRunner['read'] = (create, ...parameters) => awaitWork(create(...parameters), run)
  return {
    read: alone,
    write: alone,
    transact: (create, ...parameters) => transaction((session) => workIn(session, create(...parameters))),
  }
}

/** Runs work inside the caller's transaction. */
export function workIn<Value>(session: PostgresSession, work: SqlWork<Value>): Promise<Value> {
  return awaitWork(work, async (text, values) => (await session.query(text, values)).rows as readonly SqlRow[])
}

/** Runs work; a rejected statement ends it. */
async function awaitWork<Value>(work: SqlWork<Value>, run: PostgresConnection['run']): Promise<Value> {
  let step = work.next()
  while (step.done !== true) {
    const [text, parameters] = step.value
    // A text that no column can store equals nothing.
    const isFound = parameters.every((parameter) => typeof parameter !== 'string' || isStorable(parameter))
    step = work.next(isFound || text.includes('INSERT') ? await run(text, parameters.map(boundValue)) : [])
  }
  return step.value
}

function boundValue(parameter: SqlParameter): unknown {
  if (Array.isArray(parameter)) return parameter.filter(isStorable)
  // Some clients send numbers of 64 bits as floats.
  return typeof parameter === 'bigint' || (typeof parameter === 'number' && Math.abs(parameter) > MAX_INTEGER)
    ? String(parameter)
    : parameter
}
