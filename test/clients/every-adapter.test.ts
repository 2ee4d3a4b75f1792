import { gzipSync } from 'node:zlib'
import express5 from 'express'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expressHandler } from '../../src/adapters/express.ts'
import { express4, MOUNTS, type Mounted } from '../adapters/support/mounts.ts'
import { listen } from '../support/listen.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { openaiClient } from './support/openai-clients.ts'

const ALL_MOUNTS: typeof MOUNTS = {
  ...MOUNTS,
  'express 5 behind express.json()': (gateway) =>
    listen(express5().use(express5.json()).use('/ai', expressHandler(gateway))),
  // Its parser marks every request, those that it leaves unread too.
  'express 4 behind express.urlencoded()': (gateway) =>
    listen(
      express4()
        .use(express4.urlencoded({ extended: false }))
        .use('/ai', expressHandler(gateway)),
    ),
  'express 4 behind express.json()': (gateway) =>
    listen(express4().use(express4.json()).use('/ai', expressHandler(gateway))),
}

// One model whose answers pass through as bytes, and two that are translated.
const MODELS = ['chat-relayed', 'cl-sonnet-4-6', 'gmn-2.5-flash'] as const
const EMBEDDINGS = ['embedding-relayed', 'gmn-embedding-001'] as const

describe.each(Object.entries(ALL_MOUNTS))('openai 7 through %s', (name, mount) => {
  let started: StartedGateway
  let mounted: Mounted
  let client: OpenAI

  beforeAll(async () => {
    started = await startGateway({ drainMs: 200 })
    mounted = await mount(started.gateway)
    client = openaiClient(OpenAI, `${mounted.origin}/ai`)
  })
  afterAll(async () => {
    await mounted.close()
    await started.close()
  })

  test.each(MODELS)('chats with %s', async (model) => {
    const completion = await client.chat.completions.create({
      model,
      messages: [{ role: 'user', content: 'good morning, Zoë' }],
    })

    expect(completion.choices[0]?.message.content).toBe('You said: good morning, Zoë')
  })

  test('answers a compressed body with 415, unless a body parser unpacked it', async () => {
    const answer = await fetch(`${mounted.origin}/ai/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${TEST_KEY}`,
        'content-type': 'application/json',
        'content-encoding': 'gzip',
      },
      body: gzipSync(JSON.stringify({ model: MODELS[0], messages: [{ role: 'user', content: 'hello' }] })),
    })

    expect(answer.status).toBe(name.endsWith('behind express.json()') ? 200 : 415)
    expect(await answer.text()).toContain(answer.status === 200 ? 'You said: hello' : 'Content-Encoding \\"gzip\\"')
  })

  test.each(MODELS)('streams from %s', async (model) => {
    const stream = client.chat.completions.stream({ model, messages: [{ role: 'user', content: 'good morning, Zoë' }] })
    const deltas: string[] = []
    stream.on('content', (delta) => deltas.push(delta))

    const completion = await stream.finalChatCompletion()

    expect(deltas.join('')).toBe('You said: good morning, Zoë')
    expect(completion.choices[0]?.finish_reason).toBe('stop')
  })

  test.each(MODELS)('closes the call at the vendor when it leaves a stream of %s', async (model) => {
    started.sandbox.reset()
    const ending = started.nextEnded()
    const stream = await client.chat.completions.create({
      model,
      messages: [{ role: 'user', content: '[[fault:hang-body=6]] one two three four five six seven eight' }],
      stream: true,
    })
    for await (const _chunk of stream) break
    await started.sandbox.nextAbort()
    const ended = await ending

    expect(ended.ending).toBe('abandoned')
    expect(started.sandbox.openCalls).toBe(0)
    expect((await started.account()).held).toBe(0n)
  })

  test('closes the call at the vendor when it aborts before the answer', async () => {
    started.sandbox.reset()
    const controller = new AbortController()
    const answer = client.chat.completions
      .create(
        { model: 'chat-relayed', messages: [{ role: 'user', content: '[[fault:hang]] hello' }] },
        { signal: controller.signal },
      )
      .catch((error: unknown) => error)
    await started.sandbox.nextRequest()
    controller.abort()
    await started.sandbox.nextAbort()

    expect(await answer).toBeInstanceOf(OpenAI.APIUserAbortError)
  })

  test.each(EMBEDDINGS)('embeds with %s', async (model) => {
    const texts = Array.from({ length: 12 }, (_, index) => `text number ${index}`)

    const answer = await client.embeddings.create({ model, input: texts })

    expect(answer.data.map((entry) => entry.index)).toEqual(texts.map((_, index) => index))
    expect(Math.hypot(...(answer.data[11]?.embedding ?? []))).toBeCloseTo(1, 3)
  })

  test('sends a large request and gets a large answer', async () => {
    const completion = await client.chat.completions.create({
      model: 'chat-relayed',
      messages: [
        { role: 'system', content: 'word '.repeat(18_000) },
        { role: 'user', content: 'good morning '.repeat(500) },
      ],
    })

    expect(completion.choices[0]?.message.content).toContain('good morning good morning')
    expect(completion.usage?.prompt_tokens).toBeGreaterThan(22_500)
  })

  test('lists and retrieves models', async () => {
    const page = await client.models.list()
    const model = await client.models.retrieve('cl-sonnet-4-6')

    expect(page.data.map((entry) => entry.id)).toEqual(started.gateway.models().map((entry) => entry.id))
    expect(model).toMatchObject({ id: 'cl-sonnet-4-6', owned_by: 'anthropic' })
  })

  test('throws the errors of the gateway', async () => {
    const messages = [{ role: 'user' as const, content: 'hello' }]
    const stranger = openaiClient(OpenAI, `${mounted.origin}/ai`, { apiKey: 'sk-unknown' })

    await expect(stranger.models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError)
    await expect(client.chat.completions.create({ model: 'no-such-model', messages })).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
    })
    await expect(
      client.chat.completions.create({ model: 'chat-relayed', messages, temperature: 3 }),
    ).rejects.toMatchObject({ status: 400, param: 'temperature' })
  })

  test('throws when the vendor breaks off in mid-stream', async () => {
    const stream = await client.chat.completions.create({
      model: 'chat-relayed',
      messages: [{ role: 'user', content: '[[fault:reset-mid-stream=6]] one two three four five six seven eight' }],
      stream: true,
    })
    const read = async (): Promise<void> => {
      for await (const _chunk of stream);
    }

    await expect(read()).rejects.toMatchObject({ code: 'upstream_unavailable' })
  })
})
