import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { configuredVendors } from '../../src/cli/configured-vendors.ts'
import { type RunningServer, serve } from '../../src/cli/serve-command.ts'
import { SettingError } from '../../src/cli/setting-values.ts'
import type { Vendor } from '../../src/vendors/vendor.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-vendors-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function fileOf(content: unknown, name = 'vendors.json'): string {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

function vendorsOf(content: unknown, environment: Record<string, string> = {}): ReadonlyMap<string, Vendor> {
  const all = configuredVendors({ SIGNALBOX_VENDORS: fileOf(content), ...environment }, undefined)
  return new Map(all.map(({ vendor }) => [vendor.id, vendor]))
}

describe('SIGNALBOX_VENDORS', () => {
  test.each([
    ['openai', { openai: {} }],
    ['groq', { groq: {} }],
    ['gpu', { gpu: { type: 'vllm', baseURL: 'http://127.0.0.1:9/v1' } }],
    ['azure', { azure: { type: 'azure-openai', endpoint: 'https://our.openai.azure.com', keyVariable: 'AZURE_KEY' } }],
  ])('reads the secret of safety identifiers of %s from the variable that it names', (id, content) => {
    const secret = { safetyIdentifierKey: '$IDENTIFIER_SECRET' }
    const keyed = { [id]: { ...Object.values(content)[0], ...secret } }
    const keys = { OPENAI_API_KEY: 'k-1', GROQ_API_KEY: 'k-2', AZURE_KEY: 'k-3' }
    const identifierOf = (environment: Record<string, string>, entries: object) =>
      vendorsOf(entries, { ...keys, ...environment })
        .get(id)
        ?.endUserMembers?.('/v1/chat/completions', { accountId: 'a', endUser: 'b', request: {} })
    const literal = { [id]: { ...Object.values(content)[0], safetyIdentifierKey: 'a-secret-of-the-operator' } }

    const read = identifierOf({ IDENTIFIER_SECRET: 'a-secret-of-the-operator' }, keyed)
    expect(read).toEqual(identifierOf({}, literal))
    expect(read).toHaveProperty('safety_identifier', expect.stringMatching(/^[0-9a-f]{64}$/))
    expect(() => identifierOf({}, keyed)).toThrow(/IDENTIFIER_SECRET: is not set/)
  })

  test('gives any vendor headers, a query, a proxy, certificates, and unknown models', () => {
    const ca = fileOf('the certificate', 'ca.pem')
    const vendors = vendorsOf(
      {
        openai: { headers: { 'OpenAI-Organization': 'org-1', 'X-Tenant': '$TENANT' }, passUnknownModels: true },
        groq: { query: { trace: '1' }, proxy: 'http://proxy.example:3128', tls: { ca, servername: 'llm.example' } },
        'anthropic-foundry': { headers: { 'x-own': 'yes' } },
      },
      {
        TENANT: 'acme',
        OPENAI_API_KEY: 'k-1',
        GROQ_API_KEY: 'k-2',
        ANTHROPIC_FOUNDRY_API_KEY: 'k-3',
        ANTHROPIC_FOUNDRY_BASE_URL: 'https://res.services.ai.azure.com',
        HTTPS_PROXY: 'http://other.example:8080',
      },
    )

    expect(vendors.get('openai')).toMatchObject({
      headers: ['openai-organization', 'org-1', 'x-tenant', 'acme'],
      passUnknownModels: true,
      egress: { proxy: { url: 'http://other.example:8080' } },
    })
    expect(vendors.get('groq')).toMatchObject({
      query: 'trace=1',
      passUnknownModels: false,
      egress: {
        proxy: { url: 'http://proxy.example:3128' },
        tls: { ca: 'the certificate', servername: 'llm.example' },
      },
    })
    expect(vendors.get('anthropic-foundry')?.headers).toEqual(['x-own', 'yes'])
  })

  test('an empty proxy means none, whatever HTTPS_PROXY says', () => {
    const environment = { OPENAI_API_KEY: 'k-1', HTTPS_PROXY: 'http://other.example:8080' }

    expect(vendorsOf({ openai: { proxy: '' } }, environment).get('openai')?.egress).toBeUndefined()
  })

  test('gives a vendor the options of its factory, which its variables replace', () => {
    const content = {
      openai: { responses: false, baseURL: 'https://one.example/v1' },
      gemini: { apiVersion: 'v1' },
      dashscope: { region: 'us' },
      cloudflare: { account: 'acc-1' },
      ollama: { baseURL: 'http://10.0.0.2:11434/v1', fetchesUrls: false },
    }
    const keys = { OPENAI_API_KEY: 'k', GEMINI_API_KEY: 'k', DASHSCOPE_API_KEY: 'k', CLOUDFLARE_API_KEY: 'k' }
    const vendors = vendorsOf(content, keys)
    const replaced = vendorsOf(content, { ...keys, OPENAI_BASE_URL: 'https://two.example' })

    expect(vendors.get('openai')).toMatchObject({ origin: 'https://one.example' })
    expect(vendors.get('openai')?.responses).toBeUndefined()
    expect(replaced.get('openai')?.origin).toBe('https://two.example')
    expect(vendors.get('dashscope')?.origin).toBe('https://dashscope-us.aliyuncs.com')
    expect(vendors.get('cloudflare')?.origin).toBe('https://api.cloudflare.com')
    expect(vendors.get('ollama')).toMatchObject({ origin: 'http://10.0.0.2:11434', fetchesUrls: false })
  })

  test('adds further servers: of a preset, of the dialect, and resources of Azure', () => {
    const content = {
      'gpu-2': { type: 'vllm', baseURL: 'http://10.0.0.2:8000/v1' },
      'groq-eu': { type: 'groq', keyVariable: 'GROQ_EU_KEY', headers: { 'x-region': 'eu' }, passUnknownModels: true },
      ours: { type: 'openai-compatible', baseURL: 'https://llm.example/v1', displayName: 'Ours' },
      'azure-eu': {
        type: 'azure-openai',
        endpoint: 'https://eu.openai.azure.com',
        keyVariable: 'AZURE_EU_KEY',
        deployments: { 'my-deployment': 'o4-mini' },
      },
    }
    const vendors = vendorsOf(content, { GROQ_EU_KEY: 'k-1,k-2', AZURE_EU_KEY: 'k-3' })

    expect(vendors.get('gpu-2')).toMatchObject({ origin: 'http://10.0.0.2:8000', apiKeys: [''] })
    expect(vendors.get('groq-eu')).toMatchObject({
      apiKeys: ['k-1', 'k-2'],
      headers: ['x-region', 'eu'],
      passUnknownModels: true,
      catalogId: 'groq',
    })
    expect(vendors.get('ours')).toMatchObject({ displayName: 'Ours', origin: 'https://llm.example' })
    expect(vendors.get('azure-eu')).toMatchObject({ origin: 'https://eu.openai.azure.com', catalogId: 'azure' })
  })

  test.each([
    ['not json', /does not hold valid JSON/],
    [[], /an object with a member for each vendor/],
    [{ openai: { organisation: 'x' } }, /openai: .*organisation/s],
    [{ groq: { headers: { 'x-a': 1 } } }, /groq\.headers\.x-a: /],
    [{ groq: { apiKey: 'k' } }, /groq: .*apiKey/s],
    [{ openai: { headers: { host: 'x' } } }, /openai: headers: "host"/],
    [{ openai: { headers: { 'x-a': '$NOT_THERE' } } }, /NOT_THERE: is not set/],
    [{ openai: { proxy: 'proxy.example' } }, /openai: proxy/],
    [{ openai: { tls: { ca: '/not/there.pem' } } }, /\/not\/there\.pem cannot be read/],
    [{ gpu: { headers: {} } }, /gpu: there is no such vendor/],
    [{ gpu: { baseURL: 'http://10.0.0.2:8000/v1' } }, /gpu\.type: is missing; .*"openai-compatible"/],
    [{ vertex: { baseURL: 'http://10.0.0.2:8000/v1' } }, /vertex\.type: is missing; .* \(a cloud has no baseURL here/],
    [{ gpu: 'http://10.0.0.2:8000/v1' }, /gpu: Invalid input: expected object/],
    [{ gpu: null }, /gpu: Invalid input: expected object/],
    [{ gpu: { type: 'vlm' } }, /gpu\.type: /],
    [{ gpu: { type: 'vllm', baseURL: 'nowhere' } }, /gpu\.baseURL: must be an http or https URL/],
    [{ two: { type: 'groq', keyVariable: 'NOT_THERE' } }, /NOT_THERE: is not set/],
  ])('names the place of a mistake: %j', (content, message) => {
    expect(() => vendorsOf(content)).toThrow(SettingError)
    expect(() => vendorsOf(content)).toThrow(message)
  })
})

describe('only the environment', () => {
  test('unknown models are sent to the vendors that SIGNALBOX_PASS_UNKNOWN_MODELS names', () => {
    const environment = { SIGNALBOX_PASS_UNKNOWN_MODELS: 'groq, openai', GROQ_API_KEY: 'k', ANTHROPIC_API_KEY: 'k' }
    const passing = configuredVendors(environment, undefined).filter(({ vendor }) => vendor.passUnknownModels === true)

    expect(passing.map(({ vendor }) => vendor.id)).toEqual(['openai', 'groq'])
  })

  test('AZURE_OPENAI_DEPLOYMENTS says which model is behind a deployment', () => {
    const environment = {
      AZURE_OPENAI_ENDPOINT: 'https://res.openai.azure.com',
      AZURE_OPENAI_API_KEY: 'k',
      AZURE_OPENAI_DEPLOYMENTS: 'mine=gpt-4-turbo, thinks=o4-mini',
    }
    const azure = configuredVendors(environment, undefined).find(({ vendor }) => vendor.id === 'azure-openai')?.vendor
    const faulty = { ...environment, AZURE_OPENAI_DEPLOYMENTS: 'mine' }

    expect(azure).toBeDefined()
    expect(() => configuredVendors(faulty, undefined)).toThrow(/AZURE_OPENAI_DEPLOYMENTS: .*my-deployment=gpt-6-luna/)
  })
})

test('serve calls a vendor as the file says', async () => {
  const seen: { url: string; headers: IncomingHttpHeaders }[] = []
  const vendor = createServer((request, response) => {
    seen.push({ url: request.url ?? '', headers: request.headers })
    response.writeHead(200, { 'content-type': 'application/json' })
    request.resume().on('end', () => response.end(JSON.stringify(COMPLETION)))
  })
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve))
  const baseURL = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1`
  const entry = { type: 'vllm', baseURL, headers: { 'x-team': '$TEAM' }, query: { tag: 'a b' } }
  let running: RunningServer | undefined
  try {
    running = await serve({
      environment: {
        PORT: '0',
        SIGNALBOX_STORE: 'memory:',
        SIGNALBOX_API_KEYS: 'sk-of-the-operator-1',
        SIGNALBOX_VENDORS: fileOf({ 'gpu-2': entry }),
        TEAM: 'search',
      },
      useStandIns: false,
      print: () => undefined,
      version: '0.0.0',
    })
    const answer = await fetch(`${running.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-of-the-operator-1', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpu-2/any-model', messages: [{ role: 'user', content: 'hi' }] }),
    })

    expect(answer.status).toBe(200)
    expect(seen).toMatchObject([{ url: '/v1/chat/completions?tag=a+b', headers: { 'x-team': 'search' } }])
  } finally {
    await running?.close()
    vendor.closeAllConnections()
    vendor.close()
  }
})

const COMPLETION = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'any-model',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
}
