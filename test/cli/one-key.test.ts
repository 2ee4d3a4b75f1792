import { readdirSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Sandbox, sandboxVendors } from '../../src/testing/index.ts'
import { type BuiltCommand, builtCommand, type ServerProcess } from './support/built-command.ts'

/** A newcomer has one key of one vendor, and has read nothing but the first page. */
let sandbox: Sandbox
let command: BuiltCommand
let server: ServerProcess
let filesBefore: readonly string[]
let key: string

beforeAll(async () => {
  sandbox = sandboxVendors()
  const { origin } = await sandbox.listen()
  command = await builtCommand()
  filesBefore = readdirSync(command.folder)
  server = await command.serve([], { OPENAI_API_KEY: 'sk-of-openai', OPENAI_BASE_URL: `${origin}/v1` })
  key = /sk-\S+/.exec(server.lines.find((line) => line.startsWith('key ')) ?? '')?.[0] ?? ''
})
afterAll(async () => {
  await server.end('SIGTERM')
  await command.remove()
  await sandbox.close()
})

const post = (path: string, body: object): Promise<Response> =>
  fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

describe('serve with one key of OpenAI and no file', () => {
  test('after it has said that the vendor is configured, and which key to use', () => {
    expect(server.lines.join('\n')).toContain('openai (configured)')
    expect(key).toMatch(/^sk-/)
  })

  test('a chat with gpt-4o, under its own name', async () => {
    const answer = await post('/v1/chat/completions', {
      model: 'gpt-4o',
      messages: [{ role: 'user', content: 'good morning' }],
    })

    expect(await answer.json()).toMatchObject({
      model: 'gpt-4o',
      choices: [{ message: { content: 'You said: good morning' } }],
    })
  })

  test('a response of gpt-4o', async () => {
    const answer = await post('/v1/responses', { model: 'gpt-4o', input: 'good morning' })

    expect(await answer.json()).toMatchObject({ object: 'response', model: 'gpt-4o', status: 'completed' })
  })

  test('vectors by text-embedding-3-small', async () => {
    const answer = await post('/v1/embeddings', { model: 'text-embedding-3-small', input: ['one', 'two'] })
    const { data, model } = (await answer.json()) as { data: { embedding: number[] }[]; model: string }

    expect(model).toBe('text-embedding-3-small')
    expect(data.map(({ embedding }) => embedding.length)).toEqual([1536, 1536])
  })

  test('speech by tts-1', async () => {
    const answer = await post('/v1/audio/speech', {
      model: 'tts-1',
      input: 'good morning',
      voice: 'alloy',
      response_format: 'wav',
    })
    const bytes = Buffer.from(await answer.arrayBuffer())

    expect(answer.headers.get('content-type')).toBe('audio/wav')
    expect(bytes.subarray(0, 4).toString()).toBe('RIFF')
  })

  test('answers an image by gpt-image-2', async () => {
    const answer = await post('/v1/images/generations', { model: 'gpt-image-2', prompt: 'a boat', quality: 'low' })
    const { data } = (await answer.json()) as { data: { b64_json: string }[] }

    expect(Buffer.from(data[0]!.b64_json, 'base64').subarray(1, 4).toString()).toBe('PNG')
  })

  test('lists the available models', async () => {
    const answer = await fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
    const { data } = (await answer.json()) as { data: { id: string; available: boolean }[] }
    const ids = data.filter(({ available }) => available).map(({ id }) => id)

    expect(ids).toEqual(expect.arrayContaining(['gpt-4o', 'text-embedding-3-small', 'tts-1']))
  })

  test('writes only the store into its folder', () => {
    const made = readdirSync(command.folder).filter((name) => !filesBefore.includes(name))

    expect(made.length).toBeGreaterThan(0)
    expect(made.filter((name) => !name.startsWith('signalbox.db'))).toEqual([])
  })
})

test('without the row of a file a model of another vendor is refused, and the log says what to set', async () => {
  const answer = await post('/v1/chat/completions', {
    model: 'claude-haiku-4-5',
    messages: [{ role: 'user', content: 'hi' }],
  })

  expect(answer.status).toBe(503)
  expect(await answer.text()).not.toContain('ANTHROPIC_API_KEY')
  await expect.poll(() => server.lines.join('\n')).toContain('ANTHROPIC_API_KEY')
})
