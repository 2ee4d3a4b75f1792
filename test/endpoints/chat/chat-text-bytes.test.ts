import { expect, test } from 'vitest'
import { messageTextBytes } from '../../../src/endpoints/chat/chat-operation.ts'

test.each([
  ['content and refusal', { content: 'héllo', refusal: 'no' }, 8],
  ['reasoning under one of its two names', { reasoning: 'because' }, 7],
  ['reasoning that stands under both names once', { reasoning_content: 'because', reasoning: 'because' }, 7],
  ['reasoning beside an empty text under the other name', { reasoning_content: '', reasoning: 'because' }, 7],
  [
    'names and arguments of calls',
    { content: null, tool_calls: [{ function: { name: 'add', arguments: '{}' } }, null] },
    5,
  ],
  [
    'names and inputs of calls of the other forms',
    { tool_calls: [{ custom: { name: 'add', input: '1+1' } }], function_call: { name: 'add', arguments: '{}' } },
    11,
  ],
])('%s count', (_what, message, bytes) => {
  expect(messageTextBytes(message)).toBe(bytes)
})
