import { describe, expect, test } from 'vitest'
import { parseCallerJson } from '../../../src/core/json.ts'
import type { ChatAnswerMessage, ChatCompletion, FinishReason } from '../../../src/endpoints/chat/chat-completion.ts'
import { carriedSignature } from '../../../src/endpoints/messages/messages-request.ts'
import type { Message } from '../../../src/endpoints/messages/messages-stream-writer.ts'
import { wholeMessage } from './translated-messages.ts'

function messageOf(
  answer: Partial<ChatAnswerMessage>,
  options: { reason?: FinishReason; showsThinking?: boolean; id?: string } = {},
): Message {
  const completion: ChatCompletion = {
    id: options.id ?? 'resp-1',
    object: 'chat.completion',
    created: 1,
    model: 'ignored',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: null, refusal: null, ...answer },
        logprobs: null,
        finish_reason: options.reason ?? 'stop',
      },
    ],
  }
  const usage = { inputTokens: 10, cachedInputTokens: 0, outputTokens: 2 }
  return wholeMessage(completion, usage, {
    model: 'some-model',
    showsThinking: options.showsThinking ?? true,
    nowMs: 1_795_132_800_500,
  })
}

const callOf = (json: string) => ({
  id: 'call_1',
  type: 'function' as const,
  function: { name: 'first', arguments: json },
})

test('a text is one block, with every count of usage that clients read', () => {
  expect(messageOf({ content: 'Hello' })).toEqual({
    id: 'msg_resp-1',
    type: 'message',
    role: 'assistant',
    model: 'some-model',
    content: [{ type: 'text', text: 'Hello' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 2 },
  })
})

test.each([
  ['msg_1', 'msg_1'],
  ['chatcmpl-1', 'msg_chatcmpl-1'],
  ['a/b\n', 'msg_ab'],
  ['', `msg_${(1_795_132_800_500).toString(36)}`],
])('converts the id %j to %j', (id, expected) => {
  expect(messageOf({ content: 'Hello' }, { id }).id).toBe(expected)
})

test('an empty answer has no blocks', () => {
  expect(messageOf({ content: '' }).content).toEqual([])
})

test('puts thinking first, and omits it for callers who did not request it', () => {
  const answer = { content: 'Hello', reasoning_content: 'Hm.' }

  expect(messageOf(answer).content).toEqual([
    { type: 'thinking', thinking: 'Hm.', signature: carriedSignature() },
    { type: 'text', text: 'Hello' },
  ])
  expect(messageOf(answer, { showsThinking: false }).content).toEqual([{ type: 'text', text: 'Hello' }])
})

describe('the input of a call', () => {
  test.each([
    ['{"q":"boat"}', { q: 'boat' }],
    ['', {}],
    [' ', {}],
    ['[1]', { arguments: '[1]' }],
    ['{"q":', { arguments: '{"q":' }],
    ['{"__proto__":{"a":1}}', { arguments: '{"__proto__":{"a":1}}' }],
  ])('%s', (json, input) => {
    const message = messageOf({ tool_calls: [callOf(json)] }, { reason: 'tool_calls' })

    expect(message).toMatchObject({
      stop_reason: 'tool_use',
      content: [{ type: 'tool_use', id: 'call_1', name: 'first' }],
    })
    expect(message.content[0]?.['input']).toEqual(input)
  })

  test.each([10, 57, 58, 59, 60, 64, 100_000])('nested %i deep can be sent back', (depth) => {
    const json = `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`
    const { content } = messageOf({ tool_calls: [callOf(json)] })

    const request = JSON.stringify({ messages: [{ role: 'assistant', content }] })

    expect(() => parseCallerJson(Buffer.from(request))).not.toThrow()
  })
})
