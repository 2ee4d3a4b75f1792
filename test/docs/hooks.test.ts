import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import type { AnyHook } from '../../src/index.ts'
import * as signalbox from '../../src/index.ts'
import { sandboxVendors } from '../../src/testing/index.ts'
import { codeBlocks, firstTable, readPage, section } from './support/markdown.ts'

const page = readPage('docs/hooks.md')

/** Runs the program of a section, and gives its exports. */
function programOf(heading: string): Record<string, unknown> {
  const [block] = codeBlocks({ path: page.path, text: section(page, heading) })
  const { outputText } = ts.transpileModule(block?.code ?? '', {
    compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 },
  })
  const program: Record<string, unknown> = {}
  const vendors = [signalbox.openai({ apiKey: 'key' })]
  new Function('require', 'exports', 'vendors', outputText)(() => signalbox, program, vendors)
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
    [12, 'cl-sonnet-4-6', 200],
    [23, 'cl-sonnet-4-6', 403],
    [6, 'cl-opus-4-7', 200],
  ])('at %i o’clock %s is answered with %i', async (hour, model, status) => {
    const answer = await asked([officeHours(() => hour)], model, 'hello')

    expect(answer.status, answer.text).toBe(status)
    if (status === 403) expect(answer.text).toContain('from 6 to 20')
  })
})

describe('the prompt log', () => {
  type Log = (sink: (prompt: { texts: readonly string[] }) => void, sample: number, random: () => number) => AnyHook
  const promptLog = programOf('A prompt log with sampling')['promptLog'] as Log

  test('holds a sample of what vendors read', async () => {
    const logged: string[] = []
    const redact = signalbox.redact([signalbox.pii.email])
    for (const random of [0.005, 0.5])
      await asked(
        [
          redact,
          promptLog(
            ({ texts }) => logged.push(...texts),
            0.01,
            () => random,
          ),
        ],
        'cl-opus-4-7',
        'a@b.example',
      )

    expect(logged).toEqual(['[EMAIL]'])
  })

  test('stops no call when it fails', async () => {
    const failing = promptLog(
      () => {
        throw new Error('the disk is full')
      },
      1,
      () => 0,
    )
    expect((await asked([failing], 'cl-opus-4-7', 'hi')).status).toBe(200)
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
  }

  expect(named.sort()).toEqual(Object.keys(known).sort())
})
