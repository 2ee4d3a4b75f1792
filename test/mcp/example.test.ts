import { expect, test } from 'vitest'
import { endOfExample } from '../examples/support/run-example.ts'

test('the example mcp connects a client, lists the tools and calls one', async () => {
  const { code, output } = await endOfExample('mcp', { PORT: '0' })

  expect(output).toMatch(/^tools {3}chat_complete, /m)
  expect(output).toMatch(/^answer {2}You said: good morning$/m)
  expect(code).toBe(0)
})
