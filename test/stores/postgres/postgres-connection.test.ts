import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  type PostgresClient,
  type PostgresPreparedStatement,
  type PostgresResult,
  postgresConnection,
} from '../../../src/stores/postgres/postgres-connection.ts'

type Query = (text: string, values?: unknown[]) => Promise<PostgresResult>

/** A pool with one connection; `query` stands for the server. */
function poolOf(query: Query) {
  const ask = vi.fn((statement: string | PostgresPreparedStatement, values?: unknown[]) =>
    typeof statement === 'string' ? query(statement, values) : query(`PREPARED ${statement.text}`, statement.values),
  )
  const client = { query: ask, release: vi.fn<PostgresClient['release']>(), on: vi.fn() }
  const pool = { query, connect: vi.fn(async () => client), on: vi.fn() }
  return { pool, client }
}

/** An error as the server reports it. */
function serverError(code: string, severity = 'ERROR'): Error {
  return Object.assign(new Error(`refused with ${code}`), { code, severity })
}

const never = new Promise<PostgresResult>(() => {})

afterEach(() => {
  vi.useRealTimers()
})

describe('connection to PostgreSQL', () => {
  test('gives a connection back after a statement, and after one that the server refused', async () => {
    const { pool, client } = poolOf(async (text) => {
      if (text === 'wrong') throw serverError('42601')
      return { rows: [{ one: 1 }] }
    })
    const connection = postgresConnection(pool, 1_000)

    expect(await connection.run('SELECT 1')).toEqual([{ one: 1 }])
    await expect(connection.run('wrong')).rejects.toThrow('refused with 42601')

    expect(client.release.mock.calls).toEqual([[undefined], [undefined]])
  })

  test.each([
    ['the socket broke', new Error('read ECONNRESET')],
    ['the server shuts down', serverError('57P01', 'FATAL')],
  ])('throws a connection away when %s, and passes the error on', async (_case, error) => {
    const { pool, client } = poolOf(() => Promise.reject(error))

    await expect(postgresConnection(pool, 1_000).run('SELECT 1')).rejects.toBe(error)

    expect(client.release.mock.calls).toEqual([[error]])
  })

  test.each(['40001', '40P01'])('tries again after %s, five times at most', async (code) => {
    const query = vi.fn<Query>(() => Promise.reject(serverError(code)))
    const connection = postgresConnection(poolOf(query).pool, 1_000)

    await expect(connection.run('SELECT 1')).rejects.toThrow(code)
    expect(query).toHaveBeenCalledTimes(5)

    query.mockRejectedValueOnce(serverError(code)).mockResolvedValueOnce({ rows: [{ one: 1 }] })
    expect(await connection.run('SELECT 1')).toEqual([{ one: 1 }])
  })

  test('closes a connection whose server accepts no more changes, so that the next one finds the new primary', async () => {
    const refused = serverError('25006')
    const { pool, client } = poolOf(async () => Promise.reject(refused))
    const connection = postgresConnection(pool, 1_000)

    await expect(connection.run('UPDATE accounts')).rejects.toBe(refused)

    expect(client.release.mock.calls).toEqual([[refused]])
  })

  test('gives up after its deadline and throws the connection away', async () => {
    vi.useFakeTimers()
    const { pool, client } = poolOf(() => never)
    const outcome = expect(postgresConnection(pool, 700).run('SELECT 1')).rejects.toThrow('within 700 ms')

    await vi.advanceTimersByTimeAsync(700)

    await outcome
    expect(client.release.mock.calls).toEqual([[expect.any(Error)]])
  })

  test('gives up waiting for a connection, and gives one that comes too late back unused', async () => {
    vi.useFakeTimers()
    const { pool, client } = poolOf(() => Promise.reject(new Error('not expected')))
    let lend = (_client: typeof client): void => {}
    pool.connect.mockReturnValueOnce(
      new Promise((resolve) => {
        lend = resolve
      }),
    )
    const outcome = expect(postgresConnection(pool, 700).run('SELECT 1')).rejects.toThrow('within 700 ms')

    await vi.advanceTimersByTimeAsync(700)
    await outcome
    lend(client)
    await vi.advanceTimersByTimeAsync(0)

    expect(client.release.mock.calls).toEqual([[]])
  })

  test('listens for errors of pool and connections once each, so that none ends the process', async () => {
    const { pool, client } = poolOf(async () => ({ rows: [] }))

    const connections = [postgresConnection(pool, 1_000), postgresConnection(pool, 1_000)]
    for (const connection of connections) await connection.run('SELECT 1')

    expect(pool.on.mock.calls.map(([event]) => event)).toEqual(['error', 'connect'])
    expect(client.on.mock.calls).toEqual([['error', expect.any(Function)]])
  })

  test('undoes a transaction that fails and throws the first error', async () => {
    const texts: string[] = []
    const { pool } = poolOf(async (text) => {
      texts.push(text)
      return { rows: [] }
    })
    const work = postgresConnection(pool, 1_000).transaction(async (session) => {
      await session.query('INSERT')
      throw new Error('changed my mind')
    })

    await expect(work).rejects.toThrow('changed my mind')
    expect(texts).toEqual(['BEGIN', 'INSERT', 'ROLLBACK'])
  })

  test('throws a connection away on which a transaction could not be undone', async () => {
    const { pool, client } = poolOf(async (text) => {
      if (text === 'BEGIN') return { rows: [] }
      throw serverError('25000')
    })

    const work = postgresConnection(pool, 1_000).transaction((session) => session.query('INSERT') as Promise<unknown>)

    await expect(work).rejects.toMatchObject({ cause: { code: '25000' } })
    expect(client.release.mock.calls).toEqual([[expect.any(Error)]])
  })

  test('takes any object with query and transaction, with the same deadline', async () => {
    vi.useFakeTimers()
    const session = { query: async () => ({ rows: [{ one: 1 }] }) }
    const client = {
      query: vi.fn(session.query),
      transaction: <Value>(run: (given: typeof session) => Promise<Value>) => run(session),
    }
    const connection = postgresConnection(client, 700)

    expect(await connection.run('SELECT 1')).toEqual([{ one: 1 }])
    expect(await connection.transaction(async (given) => (await given.query('SELECT 1')).rows)).toEqual([{ one: 1 }])

    client.query.mockReturnValueOnce(never as ReturnType<typeof session.query>)
    const outcome = expect(connection.run('SELECT 1')).rejects.toThrow('within 700 ms')
    await vi.advanceTimersByTimeAsync(700)
    await outcome
  })

  test('waits for what is under way when it is closed, and refuses what comes later', async () => {
    let answer = (_result: PostgresResult): void => {}
    const { pool } = poolOf(
      () =>
        new Promise((resolve) => {
          answer = resolve
        }),
    )
    const connection = postgresConnection(pool, 1_000)
    const order: string[] = []
    const statement = connection.run('SELECT 1').then(() => order.push('answered'))
    await vi.waitFor(() => expect(pool.connect).toHaveBeenCalled())
    const closing = connection.close().then(() => order.push('closed'))

    await expect(connection.run('SELECT 2')).rejects.toThrow('closed')
    answer({ rows: [] })
    await Promise.all([statement, closing])

    expect(order).toEqual(['answered', 'closed'])
  })

  test.each(['26000', '42P05', '0A000'])(
    'sends a named statement without its name after the server rejected the prepared one with %s',
    async (code) => {
      const { pool, client } = poolOf(async (text) => {
        if (text.startsWith('PREPARED')) throw serverError(code)
        return { rows: [{ one: 1 }] }
      })
      const connection = postgresConnection(pool, 1_000)

      expect(await connection.run('SELECT 1', [], 'one')).toEqual([{ one: 1 }])
      expect(await connection.run('SELECT 1', [], 'one')).toEqual([{ one: 1 }])

      expect(client.query.mock.calls).toEqual([
        [{ name: 'one', text: 'SELECT 1', values: [] }],
        ['SELECT 1', []],
        ['SELECT 1', []],
      ])
    },
  )
})
