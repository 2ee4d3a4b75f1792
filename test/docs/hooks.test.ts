import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import type { AnyHook } from '../../src/index.ts'
import * as signalbox from '../../src/index.ts'
import { sandboxVendors } from '../../src/testing/index.ts'
import { codeBlocks, firstTable, readPage, section } from './support/markdown.ts'

const page = readPage('docs/hooks.md')

/** Runs the program of a section, and gives its exports. */
function programOf(heading: string, modules: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const block = codeBlocks({ path: page.path, text: section(page, heading) }).find(({ language }) => language === 'ts')
  const { outputText } = ts.transpileModule(block?.code ?? '', {
    compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 },
  })
  const program: Record<string, unknown> = {}
  const vendors = [signalbox.openai({ apiKey: 'key' })]
  new Function('require', 'exports', 'vendors', outputText)(
    (name: string) => modules[name] ?? signalbox,
    program,
    vendors,
  )
  return program
}

/** Asks a gateway with these hooks in front of stand-ins. */
async function asked(
  hooks: readonly AnyHook[],
  model: string,
  content: string,
): Promise<{ status: number; text: string }> {
  const sandbox = sandboxVendors()
  const connection = { apiKey: 'key' }
  const gateway = signalbox.createGateway({
    vendors: [signalbox.openai(connection), signalbox.anthropic(connection)],
    billing: 'off',
    keys: [{ key: 'sk-test', account: 'acct' }],
    transport: sandbox.transport(),
    hooks,
  })
  const answer = await gateway.fetch(
    new Request('https://gateway.example/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
    }),
  )
  const text = await answer.text()
  await gateway.close()
  return { status: answer.status, text }
}

test('the program of redaction makes a gateway, and its rules are those of the table', async () => {
  const { gateway } = programOf('Redaction')
  await (gateway as signalbox.Gateway).close()
  const [, ...rows] = firstTable(section(page, 'Redaction'))

  expect(rows.map(([rule = '']) => rule.replaceAll('`', '').replace('pii.', '')).sort()).toEqual(
    Object.keys(signalbox.pii).sort(),
  )
})

describe('the allow list by time of day', () => {
  const officeHours = programOf('An allow list by time of day')['officeHours'] as (hourNow: () => number) => AnyHook

  test.each([
    [12, 'claude-sonnet-5-5', 200],
    [23, 'claude-sonnet-5-5', 403],
    [6, 'claude-opus-5-5', 200],
  ])('answers at %i o’clock a request to %s with %i', async (hour, model, status) => {
    const answer = await asked([officeHours(() => hour)], model, 'hello')

    expect(answer.status, answer.text).toBe(status)
    if (status === 403) expect(answer.text).toContain('from 6 to 20')
  })
})

test('the prompt log is a sample of calls, without what its rules find', async () => {
  const written: string[] = []
  const promptLog = programOf('A prompt log', {
    'node:fs/promises': { appendFile: async (_path: string, text: string) => void written.push(text) },
  })['promptLog'] as AnyHook
  for (let call = 0; call < 400 && written.length === 0; call++)
    await asked([promptLog], 'claude-opus-5-5', 'I am a@b.example')

  expect(written.join('')).toContain('I am [EMAIL]')
  expect(written.join('')).not.toContain('a@b.example')
})

test('the program of JSON answers makes a gateway', async () => {
  const { gateway } = programOf('Answers as JSON')
  await (gateway as signalbox.Gateway).close()
})

describe('the answer of our own', () => {
  const openingHours = programOf('Your own answers')['openingHours'] as (text: string) => AnyHook

  test.each([
    ['When do you open?', true],
    ['Who are you?', false],
  ])('answers %j with its own text: %s', async (question, isOwnText) => {
    const { status, text } = await asked([openingHours('At nine.')], 'claude-opus-5-5', question)

    expect(status).toBe(200)
    expect(text.includes('At nine.')).toBe(isOwnText)
  })
})

test('the endpoints of the page are those that there are', () => {
  const [, ...rows] = firstTable(section(page, 'Endpoints'))
  const named = rows.flatMap(([ids = '']) => ids.replaceAll('`', '').split(', '))
  const known: Record<signalbox.EndpointId, true> = {
    chat: true,
    messages: true,
    responses: true,
    embeddings: true,
    rerank: true,
    images: true,
    image_edits: true,
    videos: true,
    speech: true,
    moderations: true,
    completions: true,
    transcriptions: true,
  }

  expect(named.sort()).toEqual(Object.keys(known).sort())
})
