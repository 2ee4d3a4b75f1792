import express5 from 'express'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expressHandler } from '../../src/adapters/express.ts'
import { compression, express4, type Mounted } from '../adapters/support/mounts.ts'
import { listen } from '../support/listen.ts'
import { chatBody, type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { openaiClient } from './support/openai-clients.ts'

describe.each([
  ['5', express5],
  ['4', express4],
] as const)('in Express %s with compression() before the gateway', (_version, express) => {
  let started: StartedGateway
  let mounted: Mounted

  beforeAll(async () => {
    started = await startGateway()
    mounted = await listen(express().use(compression()).use('/ai', expressHandler(started.gateway)))
  })
  afterAll(async () => {
    await mounted.close()
    await started.close()
  })

  // The vendor sends a number of events and then nothing: only events that are not buffered can arrive.
  test.each([
    ['chat-relayed', 4, 'You said: one'],
    ['chat-relayed', 6, 'You said: one two three'],
    ['cl-sonnet-4-6', 6, 'You said: one'],
    ['gmn-2.5-flash', 4, 'You said: one two'],
  ])('what %s has said after %i events has arrived, and nothing waits', async (model, events, text) => {
    const client = openaiClient(OpenAI, `${mounted.origin}/ai`)
    const stream = await client.chat.completions.create({
      model,
      messages: [{ role: 'user', content: `[[fault:hang-body=${events}]] one two three four five` }],
      stream: true,
    })
    let received = ''
    for await (const chunk of stream) {
      received += chunk.choices[0]?.delta.content ?? ''
      if (received === text) break
    }
    await started.sandbox.nextAbort()

    expect(received).toBe(text)
  })

  test('events arrive one by one, each when the vendor sends it', async () => {
    const response = await fetch(`${mounted.origin}/ai/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${TEST_KEY}`,
        'content-type': 'application/json',
        'accept-encoding': 'gzip, deflate, br',
      },
      body: JSON.stringify(chatBody('chat-relayed', '[[fault:pace=25]] one two three four five six', { stream: true })),
    })
    const reads: string[] = []
    const decoder = new TextDecoder()
    for await (const bytes of response.body ?? []) reads.push(decoder.decode(bytes, { stream: true }))

    expect(response.headers.get('content-encoding')).toBeNull()
    expect(response.headers.get('cache-control')).toContain('no-transform')
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    expect(reads.join('')).toMatch(/\[DONE\]\n\n$/)
    const words = reads.filter((text) => text.includes('"content":" ') || text.includes('"content":"You'))
    // Eight words; a busy machine may read a few of them together, but what is kept back comes in one piece.
    expect(words.length).toBeGreaterThanOrEqual(3)
  })

  test('whole answers are compressed and read right', async () => {
    const response = await fetch(`${mounted.origin}/ai/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json', 'accept-encoding': 'gzip' },
      body: JSON.stringify(chatBody('chat-relayed', 'good morning '.repeat(200))),
    })
    const body = (await response.json()) as OpenAI.ChatCompletion

    expect(response.headers.get('content-encoding')).toBe('gzip')
    expect(body.choices[0]?.message.content).toContain('good morning good morning')
  })
})
