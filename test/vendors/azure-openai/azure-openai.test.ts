import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import type { EmbeddingsRequest } from '../../../src/endpoints/embeddings/embeddings-request.ts'
import { type AzureOpenAIOptions, azureOpenai } from '../../../src/vendors/azure-openai/azure-openai.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { bodyOf, callFromRequest, callFromText, NOW_MS, wireAnswer } from '../shared/vendor-call.ts'

const KEY = 'azure-key-0123456789'

function vendorWith(options: Partial<AzureOpenAIOptions> = {}) {
  return azureOpenai({ apiKey: KEY, ...(options.endpoint === undefined ? { resource: 'res' } : {}), ...options })
}

function chatTo(vendor: ReturnType<typeof azureOpenai>, fields: Partial<ChatRequest> = {}, upstream = 'my deployment') {
  const request = { model: 'public', messages: [{ role: 'user', content: 'Hi' }], ...fields } as ChatRequest
  return vendor.chat!.toWire(callFromText<ChatRequest>(JSON.stringify(request), { upstream, apiKey: KEY }))
}

describe('addresses', () => {
  for (const endpoint of [
    'https://res.openai.azure.com',
    'https://res.openai.azure.com/',
    'https://res.openai.azure.com/openai',
    'https://res.openai.azure.com/openai/v1',
    'https://res.openai.azure.com/openai/v1/',
    'https://res.services.ai.azure.com/openai/v1',
    'https://res.openai.azure.us/openai/v1/chat/completions',
    'https://res.openai.azure.com/openai/v1?api-version=v1',
    'https://res.services.ai.azure.com/models',
    'https://res.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview',
  ]) {
    it(`${endpoint} is asked at the v1 path, with the deployment as the model`, () => {
      const vendor = vendorWith({ endpoint })
      const wire = chatTo(vendor)

      expect(vendor.origin).toBe(new URL(endpoint).origin)
      expect(wire.path).toBe('/openai/v1/chat/completions')
      expect(bodyOf(wire.body)['model']).toBe('my deployment')
    })
  }

  it('follow from the name of the resource', () => {
    expect(vendorWith().origin).toBe('https://res.openai.azure.com')
  })

  it('may be behind a proxy with a path', () => {
    expect(chatTo(vendorWith({ endpoint: 'https://apim.example/azure/openai/v1' })).path).toBe(
      '/azure/openai/v1/chat/completions',
    )
  })

  it('name the deployment in the path of a dated version', () => {
    const vendor = vendorWith({ apiVersion: '2024-10-21' })
    const embed = vendor.embeddings!.toWire(
      callFromRequest<EmbeddingsRequest>({ model: 'e', input: 'a' }, { upstream: 'emb' }),
    )

    expect(chatTo(vendor).path).toBe('/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21')
    expect(embed.path).toBe('/openai/deployments/emb/embeddings?api-version=2024-10-21')
  })

  it('take the version of an address copied from the portal', () => {
    const endpoint =
      'https://res.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2025-01-01-preview'
    expect(chatTo(vendorWith({ endpoint })).path).toBe(
      '/openai/deployments/my%20deployment/chat/completions?api-version=2025-01-01-preview',
    )
    const responses = vendorWith({
      endpoint: 'https://res.openai.azure.com/openai/responses?api-version=2025-04-01-preview',
    })
    expect(responses.responses).toBeDefined()
    expect(chatTo(responses).path).toBe(
      '/openai/deployments/my%20deployment/chat/completions?api-version=2025-04-01-preview',
    )
  })

  it('name the version for the preview of v1', () => {
    expect(chatTo(vendorWith({ apiVersion: 'preview' })).path).toBe('/openai/v1/chat/completions?api-version=preview')
    expect(chatTo(vendorWith({ apiVersion: 'v1' })).path).toBe('/openai/v1/chat/completions')
  })

  it('reject unusable values with the option to set', () => {
    expect(() => azureOpenai({ apiKey: KEY })).toThrow(/resource or endpoint/)
    expect(() => azureOpenai({ apiKey: KEY, resource: 'a', endpoint: 'https://a.example' })).toThrow(/one of/)
    expect(() => azureOpenai({ apiKey: KEY, resource: 'evil.example/x' })).toThrow(/resource/)
    expect(() => vendorWith({ apiVersion: '2024' })).toThrow(/apiVersion/)
    expect(() => vendorWith({ endpoint: 'https://res.openai.azure.com/?key=1' })).toThrow(/query/)
    expect(() => azureOpenai({ resource: 'res', apikey: KEY } as AzureOpenAIOptions)).toThrow(
      /apikey is unknown; did you mean apiKey\?/,
    )
  })
})

describe('requests', () => {
  it('carry the key in its own header', () => {
    const { headers } = chatTo(vendorWith())

    expect(headers).toContain('api-key')
    expect(headers).toContain(KEY)
    expect(headers).not.toContain('authorization')
    expect(vendorWith({ apiKey: ['one-key-01', 'two-key-02'] }).apiKeys).toEqual(['one-key-01', 'two-key-02'])
    expect(vendorWith({ apiKey: undefined }).apiKeys).toEqual([])
  })

  it('bound the answer as the model behind the deployment takes it', () => {
    const vendor = vendorWith({ deployments: { fast: 'gpt-4o', deep: 'o4-mini' } })

    expect(bodyOf(chatTo(vendor, { max_tokens: 5 }, 'fast').body)).toMatchObject({ max_tokens: 5 })
    expect(bodyOf(chatTo(vendor, { max_tokens: 5 }, 'deep').body)).toMatchObject({ max_completion_tokens: 5 })
    expect(bodyOf(chatTo(vendor, { max_tokens: 5 }, 'gpt-4.1').body)).toMatchObject({ max_tokens: 5 })
  })

  it('name no sources that are read with the rights of the resource, unless its operator allows it', () => {
    const authentication = { type: 'system_assigned_managed_identity' }
    const source = { type: 'azure_search', parameters: { endpoint: 'https://s.search.windows.net', authentication } }
    const asked = { data_sources: [source] } as Partial<ChatRequest>
    const dated = { apiVersion: '2024-10-21' }
    const file: Partial<ChatRequest> = {
      messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }],
    }

    expect(vendorWith().allowsVendorObjects).toBeUndefined()
    expect(vendorWith({ allowVendorObjects: true }).allowsVendorObjects).toBe(true)
    expect(bodyOf(chatTo(vendorWith({ allowVendorObjects: true }), file).body)).toMatchObject(file)

    for (const vendor of [vendorWith(), vendorWith(dated)])
      expect(() => chatTo(vendor, asked)).toThrow(
        expect.objectContaining({ code: 'unsupported_parameter', param: 'data_sources' }),
      )
    expect(bodyOf(chatTo(vendorWith({ ...dated, allowVendorObjects: true }), asked).body)).toMatchObject(asked)
    expect(chatTo(vendorWith(dated), { data_sources: [] } as Partial<ChatRequest>).dropped).toEqual([])
  })

  it('use Responses for functions of a model that reasons, because chat completions reject them', () => {
    const vendor = vendorWith({ deployments: { fast: 'gpt-5.6-luna' } })
    const tools: NonNullable<ChatRequest['tools']> = [{ type: 'function', function: { name: 'f' } }]

    expect(chatTo(vendor, { tools }, 'fast').path).toBe('/openai/v1/responses')
    expect(chatTo(vendor, {}, 'fast').path).toBe('/openai/v1/chat/completions')
    expect(chatTo(vendor, { tools }, 'other').path).toBe('/openai/v1/chat/completions')
    expect(chatTo(vendor, { tools }, 'gpt-35-turbo').path).toBe('/openai/v1/chat/completions')
  })

  it('know that a deployment of a reasoning model reasons invisibly', () => {
    const vendor = vendorWith({ deployments: { deep: 'o4-mini' } })
    const call = callFromRequest<ChatRequest>(
      { model: 'm', messages: [{ role: 'user', content: 'x' }] },
      { upstream: 'deep' },
    )

    expect(vendor.chat!.hasHiddenReasoning?.(call)).toBe(true)
    expect(vendorWith().chat!.hasHiddenReasoning?.(call)).toBe(false)
  })
})

describe('images in requests', () => {
  const picture = { kind: 'image' as const, width: 1024, height: 1024 }

  it('count as at OpenAI, by the model behind the deployment', () => {
    const { media } = vendorWith({ deployments: { fast: 'gpt-4o-mini', 'gpt-4.1': 'gpt-4.1-mini' } })
    const own = openai({ apiKey: KEY }).media!

    for (const [deployment, model] of [
      ['fast', 'gpt-4o-mini'],
      ['gpt-4.1', 'gpt-4.1-mini'],
      ['gpt-4o', 'gpt-4o'],
      ['unknown to all', 'unknown to all'],
    ] as const) {
      expect(media!.tokens(picture, deployment)).toBe(own.tokens(picture, model))
      expect(media!.contextTokens(deployment)).toBe(own.contextTokens(model))
    }
    expect(media!.tokens(picture, 'gpt-4o')).toBe(765)
    expect(media!.tokens(picture, 'fast')).toBe(25_501)
  })
})

describe('failures', () => {
  const filtered = {
    error: {
      message: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      type: null,
      param: 'prompt',
      code: 'content_filter',
      status: 400,
      innererror: { code: 'ResponsibleAIPolicyViolation', content_filter_result: { hate: { filtered: true } } },
    },
  }
  for (const [status, body, expected] of [
    [400, filtered, { kind: 'caller', code: 'content_filter', param: 'prompt' }],
    [404, { error: { code: 'DeploymentNotFound', message: 'x' } }, { kind: 'operator', concerns: 'model' }],
    [404, { error: { code: '404', message: 'Resource not found' } }, { kind: 'operator' }],
    [401, { error: { code: 'PermissionDenied', message: 'Principal does not have access' } }, { kind: 'operator' }],
    [401, { statusCode: 401, message: 'Unauthorized. audience is incorrect' }, { kind: 'operator' }],
    [403, { error: { code: '403', message: 'Access denied due to Virtual Network rules.' } }, { kind: 'operator' }],
    [400, { error: { code: 'OperationNotSupported', message: 'x' } }, { kind: 'operator', concerns: 'model' }],
    [
      429,
      { error: { code: '429', message: 'Requests have been limited' } },
      { kind: 'rate_limited', retryAfterSeconds: 0.5 },
    ],
    [503, { error: { code: 'InternalServerError', message: 'x' } }, { kind: 'unavailable' }],
  ] as const) {
    it(`${status} ${JSON.stringify(body).slice(0, 60)} is ${expected.kind}`, () => {
      const headers = { 'content-type': 'application/json', 'retry-after-ms': '500', 'retry-after': '7' }
      expect(vendorWith().errorFrom(wireAnswer(body, status, headers), NOW_MS)).toMatchObject(expected)
    })
  }
})
