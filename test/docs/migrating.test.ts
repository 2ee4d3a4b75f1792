import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import Anthropic from '@anthropic-ai/sdk'
import { generateText } from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseDollars } from '../../src/core/money.ts'
import { ENDPOINTS } from '../../src/endpoints/registry.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'
import { codeBlocks, firstTable, ROOT, readPage, section } from './support/markdown.ts'

const page = readPage('docs/migrating.md')
const ORIGINS = ['calling vendors directly', 'LiteLLM proxy', 'Portkey', 'OpenRouter', 'the Vercel AI SDK']

describe.each(ORIGINS)('migration from %s', (origin) => {
  const part = section(page, `From ${origin}`)

  test('there is a table, and code before and after', () => {
    const blocks = codeBlocks({ path: page.path, text: part })
    const before = part.search(/^Before[,:]/m)
    const after = part.search(/^After[,:]/m)

    expect(firstTable(part).length).toBeGreaterThan(5)
    expect(blocks.length).toBeGreaterThan(1)
    expect(before).toBeGreaterThan(0)
    expect(after).toBeGreaterThan(before)
    expect(blocks.at(-1)?.language).toBe('ts')
  })

  test('what the table names here is in the source', () => {
    const source = sourceText()
    const named = firstTable(part).flatMap(([, here = '']) =>
      // A cell of one word in backquotes has lost them.
      [...`${/^\w+$/.test(here) ? `\`${here}\`` : here}`.matchAll(/`([\w./-]+)`/g)].map(([, name = '']) => name),
    )
    const theirs = ['createOpenAICompatible', 'providerOptions']

    const missing = named
      .filter((name) => !theirs.includes(name))
      .filter((name) => !source.includes(name) && !name.split('.').every((word) => hasWord(source, word)))

    expect(named.length).toBeGreaterThan(2)
    expect(missing).toEqual([])
  })
})

test('every route that a call moves to exists', () => {
  const routes = [...page.text.matchAll(/`(\/v1\/[\w/]+)`/g)].map(([, route]) => route)
  const paths: readonly string[] = ENDPOINTS.map(({ path }) => path)

  expect(routes.length).toBeGreaterThan(5)
  expect(routes.filter((route) => route !== undefined && !paths.includes(route))).toEqual([])
})

describe('the code after', () => {
  let started: StartedGateway

  beforeAll(async () => {
    started = await startGateway({
      models: [
        { id: 'gpt-6-sol', kind: 'chat', vendor: 'openai', limits: { maxOutputTokens: 128_000 } },
        { id: 'assistant', kind: 'chat', vendor: 'anthropic', upstream: 'claude-sonnet-5-5', fallbacks: ['backup'] },
        { id: 'backup', kind: 'chat', vendor: 'gemini', upstream: 'gemini-4-argon' },
      ],
      routing: { fallback: { statuses: [429, 503] } },
      prices: {
        ...testPrices,
        prices: [
          ...testPrices.prices,
          ...pricesOf('gpt-6-sol', 'claude-sonnet-5-5', 'gemini-3.8-flash', 'assistant', 'backup'),
        ],
      },
    })
  })
  afterAll(() => started.close())

  test("reaches Anthropic's model by OpenAI's client, and OpenAI's model by Anthropic's", async () => {
    const openai = new OpenAI({ baseURL: `${started.url}/v1`, apiKey: TEST_KEY })
    const anthropic = new Anthropic({ baseURL: started.url, apiKey: TEST_KEY })

    const chat = await openai.chat.completions.create({
      model: 'claude-sonnet-5-5',
      messages: [{ role: 'user', content: 'Name three rivers.' }],
    })
    const message = await anthropic.messages.create({
      model: 'gpt-6-sol',
      max_tokens: 200,
      messages: [{ role: 'user', content: 'Name three lakes.' }],
    })

    expect(chat.choices[0]?.message.content).toBe('You said: Name three rivers.')
    expect(message.content).toMatchObject([{ type: 'text', text: 'You said: Name three lakes.' }])
  })

  test('lets the AI SDK call the gateway in its own process', async () => {
    const { gateway } = started
    const provider = createOpenAICompatible({
      name: 'signalbox',
      baseURL: 'http://in-process/v1',
      apiKey: TEST_KEY,
      fetch: (input, init) => gateway.fetch(new Request(input, init)),
    })

    const result = await generateText({ model: provider('gemini-3.8-flash'), prompt: 'Name three rivers.' })

    expect(result.text).toBe('You said: Name three rivers.')
    expect(result.response.headers?.['x-signalbox-cost']).toMatch(/^\d/)
  })

  test('makes a key with the facts of the old one', async () => {
    const { key } = await started.gateway.keys.create({
      accountId: TEST_ACCOUNT,
      label: 'backend',
      scopes: { models: ['assistant'] },
      limits: { requestsPerMinute: 60 },
      spendingCap: { amount: parseDollars('50'), period: 'month' },
      expiresAtMs: Date.now() + 30 * 86_400_000,
    })
    const ask = (model: string) =>
      started.post(
        '/v1/chat/completions',
        { model, messages: [{ role: 'user', content: 'hi' }] },
        { authorization: `Bearer ${key}` },
      )

    const answers = [await ask('assistant'), await ask('backup')]

    expect(answers.map(({ status }) => status)).toEqual([200, 403])
    expect(answers[0]?.headers.get('x-signalbox-vendor')).toBe('anthropic')
  })
})

function pricesOf(...models: readonly string[]) {
  return models.flatMap((model) => [
    { model, meter: 'input_token', amount: '1.00', per: 1_000_000 } as const,
    { model, meter: 'output_token', amount: '2.00', per: 1_000_000 } as const,
  ])
}

/** The package without its stand-ins for vendors. */
function sourceText(): string {
  return readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.startsWith('testing'))
    .map((path) => readFileSync(join(ROOT, 'src', path), 'utf8'))
    .join('\n')
}

function hasWord(source: string, word: string): boolean {
  return new RegExp(`\\b${word}\\b`).test(source)
}
