import type { SqlDialect } from '../sql/statements.ts'

const TABLES: Readonly<Record<string, string>> = { usage_records: 'usage' }

const tableOf = (name: string): string => `signalbox_${TABLES[name] ?? name}`

/** Columns whose integers may be above 2^53, read as text. */
const IS_AMOUNT = /^(cap_amount|due|charged)$/

/** Index that contains everything for counting the rows of a kind. */
const storedIn = (table: string): string => `signalbox_${table} INDEXED BY signalbox_${table}_stored`

/** Dialect of SQLite. Lists are JSON. One transaction writes at a time, so no row is locked. */
export const SQLITE_DIALECT: SqlDialect = {
  table: tableOf,
  columns: (names, alias) =>
    names
      .split(', ')
      .map((name) => {
        const column = alias === undefined ? name : `${alias}.${name}`
        return IS_AMOUNT.test(name) ? `CAST(${column} AS text) AS ${name}` : column
      })
      .join(', '),
  isIn: (column, list) => `${column} IN (SELECT value FROM json_each(${list}))`,
  isInQuery: (column, query) => `${column} IN (${query})`,
  list: (parameter) => `json_each(${parameter}) AS i`,
  inOrder: (column) => column,
  index: (name) => `INDEXED BY signalbox_${name}`,
  forUpdate: '',
  skipLocked: '',
  canChangeInWith: false,
  lock: () => [],
  rowName: (keys) => keys,
  isCounted: (mark) => `number <= ${mark}`,
  links: {
    conversation: { parent: ['number'], item: ['conversation'] },
    response: { parent: ['number'], item: ['response'] },
  },
  attempts: {
    read: 'attempts',
    add: (attempt, max) =>
      `json_insert(iif(json_array_length(attempts) < ${max}, attempts, json_remove(attempts, '$[0]')), '$[#]', json(${attempt}))`,
  },
  stored: {
    idempotencyKeys: [storedIn('idempotency'), 'byte_length'],
    responses: [storedIn('responses'), 'byte_length'],
    conversations: [storedIn('conversations'), 'byte_length'],
    files: ['signalbox_files', 'byte_length'],
    tasks: [storedIn('tasks'), 'byte_length'],
    webhookSecrets: ['signalbox_webhook_secrets', 'length(secret)'],
  },
}
