import { expect, test } from 'vitest'
import { endOfExample } from './support/run-example.ts'

test('the example bedrock signs its calls and reads binary frames', async () => {
  const { code, output } = await endOfExample('bedrock', {})

  expect(code).toBe(0)
  expect(output.trim().split('\n')).toEqual([
    'chat: You said: Say hello',
    'stream: You said: Say hello',
    'messages: You said: Say hello',
    'embeddings: 256 and 256',
    'asked: converse, converse-stream, messages, invoke',
  ])
})
