import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { checkStore } from '../../../src/cli/check-command.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { FUNCTIONS, MIGRATIONS, type MigrationMode } from '../../../src/stores/postgres/migrations/migrate.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { describeLedger } from '../../../src/testing/contracts/ledger-contract.ts'
import { describeUsageStore } from '../../../src/testing/contracts/usage-store-contract.ts'
import { runCommand, runCommandWithWarnings } from '../../cli/support/run-command.ts'
import { codeBlocks, readPage } from '../../docs/support/markdown.ts'
import { missingProgram } from '../../support/real-servers.ts'
import { postgresFolder, type StartedPostgres, startPostgres } from '../../support/start-postgres.ts'
import { folderOfProgram } from '../../support/started-process.ts'
import { dropSchema, emptySchema } from './support/fresh-schema.ts'

const NEWEST = MIGRATIONS.length

/** The statements of the page: roles and grants of a new schema, then the grants of one that exists. */
const [newSchemaRights = '', existingSchemaRights = ''] = codeBlocks(readPage('docs/scaling.md'))
  .filter(({ language, code }) => language === 'sql' && code.includes('GRANT'))
  .map(({ code }) => code)

describe.skipIf(missingProgram('postgres') !== undefined)('rights in PostgreSQL', () => {
  let server: StartedPostgres
  let admin: pg.Pool
  const pools: pg.Pool[] = []

  beforeAll(async () => {
    // A server of its own, because roles belong to all databases of a server.
    server = await startPostgres({ fsync: 'off' })
    admin = new pg.Pool({ connectionString: server.url })
    await admin.query('CREATE ROLE stranger LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC')
    await admin.query(newSchemaRights)
    await admin.query('ALTER DEFAULT PRIVILEGES FOR ROLE signalbox_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC')
    await admin.query('ALTER DEFAULT PRIVILEGES FOR ROLE signalbox_owner REVOKE USAGE ON TYPES FROM PUBLIC')
  })
  afterAll(async () => {
    for (const pool of [admin, ...pools]) await pool.end()
    await server.stop()
  })

  function urlOf(role: string): string {
    const url = new URL(server.url)
    url.username = role
    return url.href
  }

  function storeOf(role: string, migrate?: MigrationMode, schema?: string): GatewayStore {
    const pool = new pg.Pool({ connectionString: urlOf(role) })
    pools.push(pool)
    return postgresStore({ pool, migrate, schema, clock: 'caller' })
  }

  const run = (role: string, ...words: string[]) =>
    runCommandWithWarnings(['migrate', ...words], { SIGNALBOX_STORE: urlOf(role) })

  /** Runs a script with psql, or as one query if the installed server comes without psql. */
  async function psql(role: string, script: string): Promise<void> {
    const folder = folderOfProgram('psql', [postgresFolder()!])
    if (folder === undefined) {
      const client = new pg.Client({ connectionString: urlOf(role) })
      await client.connect()
      await client.query(script).finally(() => client.end())
      return
    }
    const started = promisify(execFile)(join(folder, 'psql'), ['-X', '-v', 'ON_ERROR_STOP=1', urlOf(role)])
    started.child.stdin!.end(script)
    await started
  }

  const printed = async (role: string, ...words: string[]) => (await run(role, '--print', ...words)).lines.join('\n')

  /** Leaves an empty schema of the owner, as the statements of the page do. */
  async function clear(): Promise<void> {
    await admin.query(`DROP SCHEMA IF EXISTS signalbox CASCADE`)
    await admin.query(newSchemaRights.replaceAll(/^CREATE ROLE.*$/gm, ''))
  }

  describe('an owner with the grants of the page', () => {
    afterEach(clear)

    test('the printed script creates the schema in psql, and a role without CREATE serves from it', async () => {
      const script = await printed('signalbox_owner')
      await psql('signalbox_owner', script)
      const store = storeOf('signalbox_gateway', 'never')
      await store.start()
      await store.ledger.createAccount({ id: 'account_1' }, 1)

      expect(script).toContain('BEGIN;')
      expect(await store.ledger.account('account_1')).toMatchObject({ id: 'account_1' })
      expect(await printed('signalbox_owner')).toMatch(/^-- postgres:.* is up to date\.$/)
    })

    test('a failed statement of the script leaves nothing behind', async () => {
      const script = await printed('signalbox_owner')

      await expect(psql('signalbox_owner', script.replace('COMMIT;', 'SELECT 1 / 0; COMMIT;'))).rejects.toThrow(
        'division by zero',
      )
      expect(await run('signalbox_owner', '--check')).toMatchObject({ hasFailed: true })
    })

    test('a script is refused by a schema that was migrated after it was printed', async () => {
      const script = await printed('signalbox_owner')
      await run('signalbox_owner')

      await expect(psql('signalbox_owner', script)).rejects.toThrow(
        'the schema has another version than 0: print the script again',
      )
    })

    test('migrate creates the schema again after changes, with the grants of new tables and functions', async () => {
      const first = await run('signalbox_owner')
      const [name = ''] = /(?<=^CREATE FUNCTION )\w+/.exec(FUNCTIONS[0]!) ?? []
      await admin.query(`DROP FUNCTION signalbox.${name}`)
      const changed = await run('signalbox_owner', '--check', '--json')
      const serving = storeOf('signalbox_gateway', 'never').start().catch(String)
      expect(await serving).toContain(
        `or has others: ${name}; migrate is "never": run npx signalbox migrate as the owner`,
      )
      expect(await checkStore({ kind: 'postgres', url: urlOf('signalbox_owner') })).toMatchObject({
        status: 'warning',
        message: expect.stringMatching(`the next start creates these functions again: ${name}$`),
      })
      const second = await run('signalbox_owner')
      const current = await run('signalbox_owner', '--check')

      expect(first.lines).toEqual([expect.stringMatching(`^postgres:.*: migrated from version 0 to ${NEWEST}$`)])
      expect(JSON.parse(changed.lines[0]!)).toEqual({
        ...{ object: 'migration', from: NEWEST, to: NEWEST, applied: false },
        missing: expect.stringContaining(`or has others: ${name}`),
      })
      expect(changed.hasFailed).toBe(true)
      expect(second.lines).toEqual([expect.stringContaining(`migrated from version ${NEWEST} to ${NEWEST}`)])
      expect([current.lines, current.hasFailed]).toEqual([
        [expect.stringMatching(`^postgres:.* is up to date, with version ${NEWEST}$`)],
        false,
      ])
      await storeOf('signalbox_gateway', 'never').start()
    })

    test('--check names every function that is missing', async () => {
      await run('signalbox_owner')
      const names = FUNCTIONS.map((statement) => /^CREATE FUNCTION (\w+)/.exec(statement)?.[1]).sort()
      await admin.query(`DROP FUNCTION ${names.map((name) => `signalbox.${name}`).join()}`)

      const { missing } = JSON.parse((await run('signalbox_owner', '--check', '--json')).lines[0]!)

      expect(missing).toMatch(new RegExp(`: ${names.join(', ')}$`))
    })

    test('the grants for an existing schema suffice for a new role', async () => {
      await run('signalbox_owner')
      const other = (text: string) => text.replaceAll('signalbox_gateway', 'stranger')
      await admin.query(other(existingSchemaRights))

      await expect(storeOf('stranger', 'never').start()).resolves.toBeUndefined()
      expect(await checkStore({ kind: 'postgres', url: urlOf('stranger') }, 'never')).toMatchObject({ status: 'ok' })
      await admin.query('DROP OWNED BY stranger')
    })
  })

  describe('a role with only the grants of the page', () => {
    beforeAll(async () => {
      await run('signalbox_owner')
      await admin.query(existingSchemaRights)
    })
    afterAll(clear)

    const subject = {
      async create() {
        const store = storeOf('signalbox_gateway', 'never')
        await store.start()
        return store
      },
      async dispose(store: unknown) {
        await (store as GatewayStore).close()
        await pools.pop()?.end()
        await emptySchema(admin, 'signalbox')
      },
    }
    describeLedger({ describe, it: test, expect }, subject)
    describeUsageStore({ describe, it: test, expect }, subject)
  })

  describe('a start that lacks rights', () => {
    afterEach(clear)
    const failure = (store: GatewayStore) =>
      Promise.resolve(store.start()).then(
        () => 'started',
        (error: Error) => error.message,
      )
    const check = (role: string, mode?: MigrationMode) => checkStore({ kind: 'postgres', url: urlOf(role) }, mode)

    test('names the right to create a schema', async () => {
      await admin.query('DROP SCHEMA signalbox')
      const message =
        `the PostgreSQL schema "signalbox" does not exist, and this version of signalbox needs version ${NEWEST}; ` +
        'the role stranger lacks the rights to migrate it'
      const remedy =
        'run npx signalbox migrate as the owner of the schema, or grant its rights: GRANT CREATE ON DATABASE postgres TO stranger'

      expect(await failure(storeOf('stranger'))).toBe(`${message}: ${remedy}`)
      expect(await check('stranger')).toEqual({
        ...{ name: 'store', status: 'failed', remedy },
        message: expect.stringContaining(message),
      })
    })

    test('names the right to create in a schema that exists', async () => {
      expect(await failure(storeOf('signalbox_gateway'))).toContain(
        'or grant its rights: GRANT CREATE ON SCHEMA signalbox TO signalbox_gateway',
      )
    })

    test('names the owner of the functions that a migration replaces', async () => {
      await run('signalbox_owner')
      await admin.query('GRANT CREATE ON SCHEMA signalbox TO signalbox_gateway')
      await admin.query('DELETE FROM signalbox.migrations WHERE version > 0')

      expect(await failure(storeOf('signalbox_gateway'))).toContain(
        'or grant its rights: GRANT signalbox_owner TO signalbox_gateway',
      )
    })

    test('names the grants on tables and functions, which are the ones that suffice', async () => {
      await run('signalbox_owner')
      const message = 'the role stranger lacks rights on the PostgreSQL schema "signalbox"'
      const found = await check('stranger', 'never')
      const [, grants = ''] = found.remedy?.split('run as the owner of the schema: ') ?? []

      expect(found).toMatchObject({ status: 'failed', message: expect.stringContaining(message) })
      const { rows: tables } = await admin.query("SELECT tablename FROM pg_tables WHERE schemaname = 'signalbox'")
      expect(grants).toContain('GRANT USAGE ON SCHEMA signalbox TO stranger')
      for (const { tablename } of tables) expect(grants).toMatch(new RegExp(`signalbox\\.${tablename}[, ]`))
      expect(grants).toContain('GRANT SELECT, INSERT ON TABLE signalbox.entries TO stranger')
      expect(await failure(storeOf('stranger'))).toBe(`${message}: run as the owner of the schema: ${grants}`)
      await expect(run('stranger', '--check')).rejects.toThrow(message)
      await psql('signalbox_owner', grants)
      expect(await check('stranger', 'never')).toMatchObject({ status: 'ok' })
      expect(await failure(storeOf('stranger', 'never'))).toBe('started')
      await admin.query('DROP OWNED BY stranger')
    })
  })

  describe('a store that never migrates', () => {
    afterEach(clear)

    test.each([
      ['is missing', 'DROP SCHEMA signalbox', 'does not exist'],
      ['has no tables', 'SELECT', 'has version 0'],
    ])('a start fails if the schema %s, and names the command', async (_, statement, found) => {
      await admin.query(statement)
      const setting = { kind: 'postgres', url: urlOf('signalbox_gateway') } as const

      const start = storeOf('signalbox_gateway', 'never').start()

      await expect(start).rejects.toThrow(
        `the PostgreSQL schema "signalbox" ${found}, and this version of signalbox needs version ${NEWEST}; migrate is "never": ` +
          'run npx signalbox migrate as the owner of the schema',
      )
      expect(await checkStore(setting, 'never')).toMatchObject({
        ...{ status: 'failed', remedy: 'run npx signalbox migrate as the owner of the schema' },
        message: expect.stringContaining(found),
      })
    })

    test('a start fails if the schema is newer', async () => {
      await run('signalbox_owner')
      await admin.query('INSERT INTO signalbox.migrations (version) VALUES (99)')

      await expect(storeOf('signalbox_gateway', 'never').start()).rejects.toThrow(
        `The PostgreSQL schema "signalbox" has version 99, this version of signalbox knows ${NEWEST}: update signalbox.`,
      )
    })

    test('serve and the commands on the store do not migrate, and serve the schema of the owner', async () => {
      const environment = { SIGNALBOX_STORE: urlOf('signalbox_owner'), SIGNALBOX_MIGRATE: 'never' }
      const lacking = /^SIGNALBOX_STORE: .* cannot be used: the PostgreSQL schema "signalbox" has version 0/
      await expect(runCommand(['accounts', 'list'], environment)).rejects.toThrow(lacking)
      await expect(runCommand(['serve', '--sandbox', '--port', '0'], environment)).rejects.toThrow(lacking)
      expect(await run('signalbox_owner', '--check')).toMatchObject({ hasFailed: true })
      await run('signalbox_owner')

      const gateway = { ...environment, SIGNALBOX_STORE: urlOf('signalbox_gateway') }
      await runCommand(['accounts', 'create', '--id', 'acct_acme'], gateway)
      expect(await runCommand(['accounts', 'list'], gateway)).toContainEqual(expect.stringContaining('acct_acme'))
    })

    test('names the schema in the command, which migrates it', async () => {
      const store = storeOf('postgres', 'never', "Of the host's")
      await expect(store.start()).rejects.toThrow(`run npx signalbox migrate --schema "Of the host's" as the owner`)
      await psql('postgres', await printed('postgres', '--schema', "Of the host's"))

      await expect(store.start()).resolves.toBeUndefined()
      await dropSchema(admin, `"Of the host's"`)
    })
  })
})
