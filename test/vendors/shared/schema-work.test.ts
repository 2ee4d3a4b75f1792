import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../../src/core/errors.ts'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { withTypedBranches } from '../../../src/vendors/openai-compatible/preset-fields.ts'
import { hostileSchemas } from '../../support/hostile-schemas.ts'
import { callFromRequest } from './vendor-call.ts'

const apiKey = 'test-key-0123456789'
const bedrock = amazonBedrock({ apiKey, region: 'us-east-1' })

/** Longest translated body: text of the whole budget, and the schemas that are sent as they came. */
const MAX_BODY_CHARACTERS = 8_000_000

/** Several times what the work takes on a busy machine; without the budget most of these take minutes or all memory. */
const MAX_PROCESSOR_MS = 1_000

const TRANSLATIONS = [
  ['Claude', anthropic({ apiKey }).chat!, 'claude-opus-4-8'],
  ['Claude without structured output', anthropic({ apiKey }).chat!, 'claude-3-haiku'],
  ['Bedrock', bedrock.chat!, 'amazon.nova-pro-v1:0'],
  ['Gemini', gemini({ apiKey }).chat!, 'gemini-2.0-flash'],
  ['Gemini countTokens', gemini({ apiKey }).tokenCount!, 'gemini-2.0-flash'],
] as const

function requests(schema: Record<string, unknown>): Partial<ChatRequest>[] {
  const tool = (index: number, strict: boolean) => ({
    type: 'function' as const,
    function: { name: `tool_${index}`, parameters: schema, strict },
  })
  return [
    { tools: Array.from({ length: 5 }, (_, index) => tool(index, false)) },
    { tools: [tool(0, true)] },
    { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } },
  ]
}

function processorMs(run: () => void): number {
  const started = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(started)
  return (user + system) / 1_000
}

describe.each([100, 1_000])('a schema of about %i kB', (kilobytes) => {
  describe.each(hostileSchemas(kilobytes))('$name', ({ schema }) => {
    test.each(TRANSLATIONS)(
      'costs bounded work and a bounded body, or 400 that names it, at %s',
      (_name, chat, model) => {
        for (const fields of requests(schema)) {
          const call = callFromRequest<ChatRequest>(
            { model, messages: [{ role: 'user', content: 'Hi' }], ...fields },
            { upstream: model },
          )
          const durationMs = processorMs(() => {
            try {
              expect(String(chat.toWire(call).body).length).toBeLessThan(MAX_BODY_CHARACTERS)
            } catch (error) {
              if (!GatewayError.isInstance(error)) throw error
              expect(error).toMatchObject({
                code: 'invalid_request',
                param: expect.stringMatching(
                  /^(?:tools\[\d\]\.function\.parameters|response_format\.json_schema\.schema)$/,
                ),
              })
            }
          })
          expect(durationMs).toBeLessThan(MAX_PROCESSOR_MS)
        }
      },
    )

    test('is written with typed branches in time and size that follow its own', () => {
      const bound = 4 * JSON.stringify(schema).length + 1_000
      const durationMs = processorMs(() => {
        expect(JSON.stringify(withTypedBranches(schema)).length).toBeLessThan(bound)
      })
      expect(durationMs).toBeLessThan(MAX_PROCESSOR_MS)
    })
  })
})

test('one budget holds for all tools of a request', () => {
  const properties = Object.fromEntries(
    Array.from({ length: 200 }, (_, index) => [`member_${index}`, { type: 'string' }]),
  )
  const translate = (count: number) => {
    const parameters = { type: 'object', properties }
    const tools = Array.from({ length: count }, (_, index) => ({
      type: 'function' as const,
      function: { name: `tool_${index}`, parameters },
    }))
    const request = { model: 'gemini-2.0-flash', messages: [{ role: 'user' as const, content: 'Hi' }], tools }
    return gemini({ apiKey }).chat!.toWire(callFromRequest<ChatRequest>(request))
  }

  expect(String(translate(20).body)).toContain('tool_19')
  expect(() => translate(200)).toThrow(
    expect.objectContaining({ status: 400, param: expect.stringMatching(/^tools\[\d+\]\.function\.parameters$/) }),
  )
})
