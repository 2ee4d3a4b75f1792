import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { listPrices } from '../../src/catalog/prices/list-prices.ts'
import { parseSnapshot } from '../../src/catalog/vendor-models/snapshot.ts'
import { configuredCatalog } from '../../src/cli/serve-settings.ts'
import { createGateway } from '../../src/gateway/gateway.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { runCommand } from './support/run-command.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-catalog-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const chat = { modalities: { input: ['text'], output: ['text'] }, limit: { context: 1000, output: 100 } }

function publicCatalog(models: Record<string, object>): object {
  return { openai: { models }, anthropic: { models: { 'claude-9': chat } } }
}

function file(name: string, content: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, JSON.stringify(content))
  return path
}

function update(from: string, ...words: string[]): Promise<string[]> {
  const paths = ['--models', join(folder, 'models.json'), '--prices', join(folder, 'prices.json')]
  return runCommand(['catalog', 'update', '--from', from, ...paths, ...words], { OPENAI_API_KEY: 'sk-any' })
}

const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8'))

describe('signalbox catalog update', () => {
  test('writes rows and prices of the vendors with a key, which serve can read, and says what is new', async () => {
    const from = file('api.json', publicCatalog({ 'gpt-9': { ...chat, cost: { input: 1, output: 2 } } }))

    const lines = await update(from, '--markup', '1.5')

    expect(lines[0]).toBe('+ gpt-9')
    expect(read('models.json')).toMatchObject([{ id: 'gpt-9', vendor: 'openai', kind: ['chat'] }])
    expect(read('prices.json').prices).toEqual([
      { model: 'gpt-9', meter: 'input_token', amount: '1.5', per: 1_000_000 },
      { model: 'gpt-9', meter: 'output_token', amount: '3', per: 1_000_000 },
    ])
    const catalog = configuredCatalog({ SIGNALBOX_MODELS: join(folder, 'models.json') })
    expect(catalog.find('gpt-9')?.limits).toEqual({ contextTokens: 1000, maxOutputTokens: 100 })
  })

  test('keeps what left the catalog, takes small changes of prices, and waits with large ones', async () => {
    const before = {
      'gpt-8': { ...chat, cost: { input: 1, output: 2 } },
      'gpt-9': { ...chat, cost: { input: 1, output: 2 } },
    }
    await update(file('api.json', publicCatalog(before)))
    const after = file('api.json', publicCatalog({ 'gpt-9': { ...chat, cost: { input: 10, output: 3 } } }))

    const lines = await update(after)

    expect(lines).toContain('- gpt-8 is not in the catalog any more; its row and its price stay')
    expect(lines).toContain('~ gpt-9 input_token: 1 -> 10, not taken: give --accept if it is right')
    expect(lines).toContain('~ gpt-9 output_token: 2 -> 3')
    const amounts = () =>
      read('prices.json').prices.map((row: { model: string; amount: string }) => [row.model, row.amount])
    expect(amounts()).toEqual([
      ['gpt-9', '1'],
      ['gpt-9', '3'],
      ['gpt-8', '1'],
      ['gpt-8', '2'],
    ])
    await update(after, '--accept')
    expect(amounts()[0]).toEqual(['gpt-9', '10'])
  })

  test('keeps what the operator has added to a row, and tells what of a model has changed', async () => {
    await update(file('api.json', publicCatalog({ 'gpt-8': chat, 'gpt-9': chat })))
    const [first, ...others] = read('models.json')
    file('models.json', [{ ...first, aliases: ['best'], groups: ['cheap'], fallbacks: ['gpt-9'] }, ...others])
    const larger = { ...chat, limit: { context: 2000, output: 100 } }

    const lines = await update(file('api.json', publicCatalog({ 'gpt-8': larger, 'gpt-9': chat })))

    const limits = { contextTokens: 2000, maxOutputTokens: 100 }
    expect(read('models.json')[0]).toEqual({
      ...first,
      ...{ aliases: ['best'], groups: ['cheap'], fallbacks: ['gpt-9'] },
      limits,
    })
    expect(lines.filter((line) => line.startsWith('~'))).toEqual([
      '~ gpt-8: limits {"contextTokens":1000,"maxOutputTokens":100} -> {"contextTokens":2000,"maxOutputTokens":100}',
    ])
  })

  test('takes an alias of a row that has become the id of a model', async () => {
    await update(file('api.json', publicCatalog({ 'gpt-9': chat })))
    const [first] = read('models.json')
    file('models.json', [{ ...first, aliases: ['fast-1', 'best'] }])

    const lines = await update(file('api.json', publicCatalog({ 'fast-1': chat, 'gpt-9': chat })))

    expect(lines).toContain('! fast-1 is a model of its own now, and no alias of gpt-9 any more')
    expect(read('models.json').map(({ id, aliases }: { id: string; aliases?: string[] }) => [id, aliases])).toEqual([
      ['fast-1', undefined],
      ['gpt-9', ['best']],
    ])
  })

  test('leaves out ids that no row can have, so that serve can read the file, and takes no catalog of others', async () => {
    const lines = await update(file('api.json', publicCatalog({ 'gpt-9': chat, 'gpt *': chat, 'all*': chat })))

    expect(read('models.json').map(({ id }: { id: string }) => id)).toEqual(['gpt-9'])
    expect(lines).toContain('! "gpt *" cannot be the id of a row; omitted')
    expect(lines).toContain('! "all*" cannot be the id of a row; omitted')
    await expect(update(file('other.json', { sample_spec: { mode: 'chat' } }))).rejects.toThrow(
      'has no models of the configured vendors (openai)',
    )
    expect(read('models.json')).toHaveLength(1)
  })

  test('tells prices of sizes of prompts that are new or gone, and writes none that serve cannot read', async () => {
    const listed = (size: number) => ({
      ...chat,
      cost: { input: 1, output: 2, tiers: [{ input: 2, output: 4, tier: { type: 'context', size } }] },
    })
    await update(file('api.json', publicCatalog({ 'gpt-9': listed(200_000) })))
    const { prices, ...rest } = read('prices.json')
    file('prices.json', { ...rest, prices: [...prices, { model: 'gpt-9', meter: 'web_search', amount: '0.01' }] })

    const after = file('api.json', publicCatalog({ 'gpt-9': listed(272_000) }))

    expect((await update(after)).filter((line) => !line.includes('.json'))).toEqual([
      '+ gpt-9 input_token above 272000 tokens: 2',
      '+ gpt-9 output_token above 272000 tokens: 4',
      '- gpt-9 input_token above 200000 tokens is not in the catalog any more; it stays',
      '- gpt-9 output_token above 200000 tokens is not in the catalog any more; it stays',
    ])
    const before = read('prices.json')
    const odd = file('odd.json', publicCatalog({ 'gpt-9': { ...chat, cost: { input: 0.1234567, output: 1 } } }))
    await expect(update(odd, '--markup', '1.2345678901234567')).rejects.toThrow(/--markup: prices\[0\]\.amount/)
    expect(read('prices.json')).toEqual(before)
  })

  test('goes through the proxy of the environment, and says what failed', async () => {
    const asked: string[] = []
    const proxy = createServer().on('connect', ({ url }, socket) => {
      asked.push(url!)
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    const origin = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const run = (from: string, environment: Record<string, string>) =>
      runCommand(['catalog', 'update', '--from', from], { OPENAI_API_KEY: 'sk-any', ...environment })

    await expect(run('https://catalog.example/api.json', { HTTPS_PROXY: origin })).rejects.toThrow(
      /https:\/\/catalog\.example\/api\.json cannot be read \(.*403/,
    )
    expect(asked).toEqual(['catalog.example:443'])
    proxy.close()
    await expect(run(`${origin}/api.json`, {})).rejects.toThrow(/cannot be read \(.*ECONNREFUSED/)
  })

  test('reads an address, and says which source cannot be read', async () => {
    const server = createServer((request, response) => {
      response.statusCode = request.url === '/api.json' ? 200 : 500
      response.end(JSON.stringify(publicCatalog({ 'gpt-9': chat })))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

    expect(await update(`${origin}/api.json`)).toContain('+ gpt-9')
    await expect(update(`${origin}/other`)).rejects.toThrow('cannot be read (status 500)')
    server.close()
    await expect(update(join(folder, 'missing.json'))).rejects.toThrow('missing.json cannot be read')
    await expect(update(file('odd.json', []))).rejects.toThrow('odd.json: the catalog: must be an object')
    await expect(update(file('api.json', publicCatalog({})), '--markup', 'x')).rejects.toThrow(
      '--markup: a markup must be',
    )
  })

  test('finds the models of a vendor under the name that the catalog has for it', async () => {
    const cost = { input: 1, output: 2 }
    const from = file('api.json', {
      azure: { models: { 'gpt-9': { ...chat, cost } } },
      anthropic: { models: { 'claude-9': { ...chat, cost } } },
      groq: { models: { 'llama-9': { ...chat, cost } } },
    })
    const [models, prices] = [join(folder, 'models.json'), join(folder, 'prices.json')]
    await runCommand(['catalog', 'update', '--from', from, '--models', models, '--prices', prices], {
      AZURE_OPENAI_API_KEY: 'k',
      AZURE_OPENAI_ENDPOINT: 'https://res.openai.azure.com',
      ANTHROPIC_FOUNDRY_API_KEY: 'k',
      ANTHROPIC_FOUNDRY_BASE_URL: 'https://res.services.ai.azure.com',
      SIGNALBOX_VENDORS: file('vendors.json', { 'groq-eu': { type: 'groq', keyVariable: 'EU_KEY' } }),
      EU_KEY: 'k',
    })

    expect(read('models.json').map(({ id, vendor }: { id: string; vendor: string }) => [vendor, id])).toEqual([
      ['groq-eu', 'llama-9'],
      ['azure-openai', 'gpt-9'],
      ['anthropic-foundry', 'claude-9'],
    ])
    expect(read('prices.json').prices).toHaveLength(6)
  })

  test('needs a vendor with a key', async () => {
    await expect(runCommand(['catalog', 'update'], {})).rejects.toThrow('no vendor has a key')
  })
})

test('signalbox models --all lists what a key of the vendor makes callable', async () => {
  const lines = await runCommand(['models', '--all'], { OPENAI_API_KEY: 'sk-any' })

  expect(lines.some((line) => line.startsWith('gpt-4o '))).toBe(true)
  expect((await runCommand(['models'], {})).some((line) => line.startsWith('gpt-4o '))).toBe(false)
})

describe('signalbox catalog update --snapshot', () => {
  const days = (count: number): string => new Date(Date.now() - count * 86_400_000).toISOString().slice(0, 10)
  const write = (from: string, ...words: string[]): Promise<string[]> =>
    runCommand(['catalog', 'update', '--from', from, '--snapshot', join(folder, 'catalog.json'), ...words], {})
  const model = (id: string): string | undefined =>
    (read('catalog.json').models.openai as string[]).find((line) => line.startsWith(`${id}|`))

  test('writes a snapshot of all vendors that a gateway can load, and keeps what the public catalog does not know', async () => {
    const from = file('api.json', publicCatalog({ 'gpt-9': { ...chat, cost: { input: 1, output: 2 } } }))

    const lines = await write(from)

    expect(lines).toContain('+ openai/gpt-9')
    expect(lines.at(-1)).toBe(`${join(folder, 'catalog.json')}: models of ${days(0)}, 2 new, 0 with the old price`)
    expect(parseSnapshot(read('catalog.json'), Date.now()).date).toBe(days(0))
    expect(model('gpt-9')).toBe('gpt-9||c|1000|100|t|t|||1,2')
    expect(model('whisper-1')).toMatch(/^whisper-1\|Whisper\|a/)
    const gateway = createGateway({
      vendors: [openai({ apiKey: 'sk-any' })],
      prices: listPrices(),
      catalog: { from: join(folder, 'catalog.json') },
    })
    await gateway.loadCatalog()
    expect(gateway.prices()?.find(({ model: id }) => id === 'gpt-9')?.prices[1]).toMatchObject({ amount: '2' })
    await gateway.close()
  })

  test('keeps the protocol that the public catalog does not name, and a price that moves too far', async () => {
    await write(file('api.json', publicCatalog({ 'gpt-9': { ...chat, cost: { input: 1, output: 2 } } })))
    const moved = file(
      'moved.json',
      publicCatalog({
        'gpt-9': { ...chat, limit: { context: 2000 }, cost: { input: 9, output: 2 } },
        'gpt-5.4-pro': { ...chat, cost: { input: 30, output: 180 } },
      }),
    )

    const lines = await write(moved)

    expect(lines.find((line) => line.startsWith('! openai/gpt-9 '))).toContain('give --accept if it is right')
    expect(lines.at(-1)).toContain('0 new, 1 with the old price')
    expect(model('gpt-9')).toBe('gpt-9||c|2000||t|t|||1,2')
    expect(model('gpt-5.4-pro')).toContain('|responses|')
    await write(moved, '--accept')
    expect(model('gpt-9')).toBe('gpt-9||c|2000||t|t|||9,2')
  })

  test('takes another snapshot with its date, and refuses one that is older than the file, which stays', async () => {
    const line = 'gpt-9||c|1000|100|t|t|||1,2'
    await write(file('new.json', { date: days(1), models: { openai: [line] } }))
    const written = readFileSync(join(folder, 'catalog.json'), 'utf8')

    await expect(write(file('old.json', { date: days(2), models: { openai: [line] } }))).rejects.toThrow(
      `is of ${days(2)}, older than the snapshot in use, of ${days(1)}`,
    )
    await expect(write(file('bad.json', { date: days(0), models: { openai: ['gpt-9|'] } }))).rejects.toThrow(
      'bad.json: models.openai[0]: is not a well-formed model line',
    )
    await expect(write(file('other.json', { nobody: { models: {} } }))).rejects.toThrow(
      'other.json: has no models of a known vendor',
    )
    expect(read('catalog.json').date).toBe(days(1))
    expect(readFileSync(join(folder, 'catalog.json'), 'utf8')).toBe(written)
  })
})
