import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Sandbox, sandboxVendors } from '../../src/testing/index.ts'
import { runCommand, runForJson } from './support/run-command.ts'

let sandbox: Sandbox
let origin: string
let folder: string
beforeAll(async () => {
  sandbox = sandboxVendors()
  origin = (await sandbox.listen()).origin
})
afterAll(() => sandbox.close())
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-init-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const CANARY = 'sk-canary-7f3a'
const keys = (): Record<string, string> => ({
  OPENAI_API_KEY: `${CANARY}-1,${CANARY}-2`,
  GROQ_API_KEY: CANARY,
  AZURE_OPENAI_API_KEY: CANARY,
  AZURE_OPENAI_ENDPOINT: origin,
  OLLAMA_BASE_URL: 'http://127.0.0.1:11434/v1',
})

const path = (name = 'signalbox.config.json'): string => join(folder, name)
const init = (environment: Record<string, string>, ...words: string[]): Promise<string[]> =>
  runCommand(['init', '--config', path(), ...words], environment)

describe('signalbox init', () => {
  test('writes the vendors whose keys are there by the names of their variables, and says what to do next', async () => {
    const lines = await init(keys())

    const text = readFileSync(path(), 'utf8')
    expect(JSON.parse(text)).toEqual({
      host: '127.0.0.1',
      port: 8787,
      vendors: { openai: { keyVariable: 'OPENAI_API_KEY' }, groq: { keyVariable: 'GROQ_API_KEY' }, ollama: {} },
    })
    expect(text).not.toContain(CANARY)
    expect(lines.join('\n')).not.toContain(CANARY)
    expect(lines[0]).toBe(
      `${path()} is written, with openai (OPENAI_API_KEY), groq (GROQ_API_KEY), ollama, azure-openai (by its variables alone)`,
    )
    expect(lines[1]).toContain(`signalbox check --config ${path()}`)
    expect(lines[2]).toContain(`signalbox serve --config ${path()}`)
    expect(lines).toHaveLength(4)
  })

  test('names the schema of the package where it is installed', async () => {
    const schemas = join(folder, 'node_modules/signalbox/schemas')
    mkdirSync(schemas, { recursive: true })
    writeFileSync(join(schemas, 'signalbox.config.schema.json'), '{}')

    const lines = await init({ OPENAI_API_KEY: CANARY }, '--print')

    const { $schema } = JSON.parse(lines.join('\n')) as { $schema: string }
    expect(join(folder, $schema)).toBe(join(schemas, 'signalbox.config.schema.json'))
  })

  test('writes what check accepts', async () => {
    const environment = {
      SIGNALBOX_STORE: 'memory:',
      OPENAI_API_KEY: CANARY,
      OPENAI_BASE_URL: origin,
      GROQ_API_KEY: CANARY,
      GROQ_BASE_URL: `${origin}/presets/groq/v1`,
    }
    await init(environment)

    const report = await runForJson(['check', '--config', path()], environment)

    expect(report).toMatchObject({ ok: true })
    const statuses = new Map(report.data.map(({ name, status }) => [name, status]))
    expect(statuses.get('configuration')).toBe('ok')
    expect(statuses.get('vendor openai')).toBe('ok')
    expect(statuses.get('vendor groq')).toBe('ok')
  })

  test('writes a file that names the variable where it is not set later', async () => {
    await init({ OPENAI_API_KEY: CANARY })

    const report = await runForJson(['check', '--config', path()], { SIGNALBOX_STORE: 'memory:' })

    expect(report.data).toContainEqual(
      expect.objectContaining({
        name: 'configuration',
        status: 'failed',
        message: expect.stringContaining('OPENAI_API_KEY: is not set'),
      }),
    )
  })

  test('prints with --print the file alone, and writes nothing', async () => {
    const lines = await init({ OPENAI_API_KEY: CANARY }, '--print')

    expect(JSON.parse(lines.join('\n'))).toMatchObject({ vendors: { openai: { keyVariable: 'OPENAI_API_KEY' } } })
    expect(existsSync(path())).toBe(false)
  })

  test('replaces a file only with --force', async () => {
    writeFileSync(path(), '{"port":1}')

    await expect(init({ OPENAI_API_KEY: CANARY })).rejects.toThrow(
      `init: ${path()} is there already; --force replaces it`,
    )
    expect(readFileSync(path(), 'utf8')).toBe('{"port":1}')

    await init({ OPENAI_API_KEY: CANARY }, '--force')
    expect(JSON.parse(readFileSync(path(), 'utf8'))).toMatchObject({ port: 8787 })
  })

  test('writes no second file next to one that serve would read as well', async () => {
    writeFileSync(path('signalbox.config.mjs'), 'export default {}')

    await expect(init({ OPENAI_API_KEY: CANARY }, '--force')).rejects.toThrow('signalbox.config.mjs is here')
    expect(existsSync(path())).toBe(false)
    await runCommand(['init', '--config', path('other.json')], { OPENAI_API_KEY: CANARY })
    expect(existsSync(path('other.json'))).toBe(true)
  })

  test('writes nothing that serve could not use', async () => {
    await expect(init({})).rejects.toThrow('init: no vendor has a key here; set one, such as OPENAI_API_KEY')
    await expect(init({ OPENAI_API_KEY: CANARY, OPENAI_BASE_URL: 'nowhere' })).rejects.toThrow('OPENAI_BASE_URL')
    await expect(init({ AZURE_OPENAI_API_KEY: CANARY })).rejects.toThrow('AZURE_OPENAI_ENDPOINT')
    await expect(runCommand(['init', '--config', path('a.mjs')], { OPENAI_API_KEY: CANARY })).rejects.toThrow('.json')
    expect(existsSync(path())).toBe(false)
  })

  test('says of a folder that is not there that the file cannot be written', async () => {
    const missing = join(folder, 'missing', 'signalbox.config.json')

    await expect(runCommand(['init', '--config', missing], { OPENAI_API_KEY: CANARY })).rejects.toThrow(
      `init: ${missing} cannot be written (ENOENT)`,
    )
  })
})
