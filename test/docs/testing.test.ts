import { expect, test } from 'vitest'
import {
  amazonBedrock,
  anthropicBedrock,
  anthropicFoundry,
  azureOpenai,
  createGateway,
  openaiCompatible,
  vertex,
} from '../../src/index.ts'
import * as testing from '../../src/testing/index.ts'
import { presets } from '../../src/vendors/presets/presets.ts'
import { firstTable, readPage, section } from './support/markdown.ts'

const page = readPage('docs/testing.md')

test('the page names every export of signalbox/testing', () => {
  const names = Object.keys(testing)

  expect(names.length).toBeGreaterThan(4)
  expect(names.filter((name) => !page.text.includes(name))).toEqual([])
})

test('the page lists every option of the stand-ins', () => {
  const table = /\| option of `sandboxVendors` [\s\S]*?\n\n/.exec(page.text)?.[0] ?? ''
  const named = firstTable(table)
    .slice(1)
    .flatMap(([names = '']) => names.replaceAll('`', '').split(', '))

  expect(() => testing.sandboxVendors({ another: 1 } as object)).toThrow(`known: ${named.join(', ')}`)
})

test('the addresses of the page lead to the stand-ins of the presets and the clouds, in process', async () => {
  const part = section(page, 'Stand-ins for the vendors')
  const sandbox = testing.sandboxVendors()
  const origin = 'http://stand-in'
  const apiKey = 'any'
  const models = [{ id: 'm', kind: 'chat' }] as const
  const [groq, bedrock] = ['/presets/groq/v1', '/bedrock']
  const vendors = [
    [openaiCompatible(presets.groq, { apiKey, models, baseURL: origin + groq }), 'm'],
    [azureOpenai({ apiKey, models, endpoint: origin }), 'm'],
    [anthropicFoundry({ apiKey, endpoint: origin }), 'claude-opus-4-8'],
    [vertex({ apiKey, project: 'my-project', location: 'global', baseURL: origin }), 'gemini-2.5-flash'],
    [amazonBedrock({ apiKey, endpoint: origin + bedrock }), 'amazon.nova-pro-v1:0'],
    [anthropicBedrock({ apiKey, endpoint: origin + bedrock }), 'eu.anthropic.claude-opus-4-8'],
  ] as const

  for (const path of [groq, bedrock, origin]) expect(part).toContain(path)
  for (const [vendor, model] of vendors) {
    const gateway = createGateway({ vendors: [vendor], transport: sandbox.transport(), billing: 'off' })
    const client = gateway.client({ accountId: 'acct_1', keyId: 'key_1', tier: 'paid' })
    const answer = await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'hello' }] })
    await gateway.close()

    expect(answer.choices[0]?.message.content, vendor.id).toBe('You said: hello')
  }
})
