import { expect, test } from 'vitest'
import { blockTextBytes } from '../../../src/vendors/anthropic/messages-operation.ts'

test.each([
  [{ type: 'text_delta', text: 'höre' }, 5],
  [{ type: 'compaction_delta', content: 'A summary.', encrypted_content: 'c2VjcmV0' }, 10],
  [{ type: 'compaction', content: 'A summary.' }, 10],
  [{ type: 'compaction', content: null }, 0],
  [{ type: 'mcp_tool_result', content: 'What a server answered.' }, 0],
])('counts the bytes of text in %j that the model wrote', (block, byteLength) => {
  expect(blockTextBytes(block)).toBe(byteLength)
})
