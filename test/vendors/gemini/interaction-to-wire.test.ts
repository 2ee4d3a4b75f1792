import { describe, expect, test } from 'vitest'
import { interactionCall, interactionsOf } from './interaction-call.ts'

const operation = interactionsOf()

function sent(...call: Parameters<typeof interactionCall>) {
  const wire = operation.toWire(interactionCall(...call))
  return { ...wire, json: JSON.parse(String(wire.body)) as Record<string, unknown> }
}

describe('an interaction on the wire', () => {
  test('goes to the Interactions API with the key in a header and the revision of the steps layout', () => {
    const { path, headers, json, dropped } = sent()

    expect(path).toBe('/v1beta/interactions')
    expect(headers).toEqual([
      'x-goog-api-key',
      'test-key-0001',
      'content-type',
      'application/json',
      'accept',
      'application/json',
      'accept-encoding',
      'identity',
      'api-revision',
      '2026-05-20',
    ])
    expect(json).toEqual({ model: 'gemini-3.1-flash-image-preview', input: 'A paper crane' })
    expect(dropped).toEqual([])
  })

  test('keeps everything but the model, the size and the id of the previous answer', () => {
    const fields = {
      input: [
        { type: 'text', text: 'Put the mug on the desk' },
        { type: 'image', mime_type: 'image/png', data: 'aGVsbG8=', resolution: 'high' },
      ],
      system_instruction: 'Muted colours.',
      response_format: {
        type: 'image',
        mime_type: 'image/png',
        image_size: '512px',
        aspect_ratio: '21:9',
        delivery: 'inline',
      },
      generation_config: { thinking_level: 'high', temperature: 0.5, seed: 7 },
      previous_interaction_id: 'v1_ours',
      store: true,
      stream: true,
      labels: { team: 'a' },
    } as const
    const call = sent(fields as never, { previousUpstreamId: 'v1_theirs' })

    expect(call.json).toEqual({
      ...fields,
      model: 'gemini-3.1-flash-image-preview',
      response_format: { ...fields.response_format, image_size: '512' },
      previous_interaction_id: 'v1_theirs',
    })
    expect(call.headers).toContain('text/event-stream')
  })

  test.each(['1K', '2K', '4K', undefined])('size %s goes out as it is, and none is made up', (image_size) => {
    const format = { type: 'image' as const, ...(image_size === undefined ? {} : { image_size }) }

    expect(sent({ response_format: format }).json['response_format']).toEqual(format)
  })

  test('follows apiVersion, baseURL and an upstream id with its collection', () => {
    const proxied = interactionsOf({ baseURL: 'https://proxy.example/google', apiVersion: 'v1' })
    const wire = proxied.toWire(interactionCall({}, { upstream: 'models/gemini-nano-banana-2.1' }))

    expect(wire.path).toBe('/google/v1/interactions')
    expect(JSON.parse(String(wire.body))).toMatchObject({ model: 'gemini-nano-banana-2.1' })
  })

  test('a caller\u2019s id never goes out as it is', () => {
    for (const options of [{}, { hasConversation: false }]) {
      expect(() => sent({ previous_interaction_id: 'v1_foreign' }, options)).toThrow(
        expect.objectContaining({ code: 'unsupported_parameter', status: 400, param: 'previous_interaction_id' }),
      )
    }
  })

  test('drops and reports a more expensive service tier', () => {
    const wire = operation.toWire(interactionCall({ service_tier: 'priority' }))

    expect(JSON.parse(String(wire.body))).not.toHaveProperty('service_tier')
    expect(wire.dropped).toEqual(['service_tier'])
  })

  test('a remote tool server is left out, so that the vendor calls no address of the caller', () => {
    const tools = [{ type: 'mcp_server', name: 'x', url: 'http://10.0.0.1/' }]
    const wire = operation.toWire(interactionCall({ tools }))

    expect(JSON.parse(String(wire.body))).not.toHaveProperty('tools')
    expect(wire.dropped).toEqual(['tools[0]'])
  })

  test('the request is never written to', () => {
    const call = interactionCall({
      response_format: { type: 'image', image_size: '512px' },
      tools: [{ type: 'google_search' }],
    })
    const before = structuredClone(call.request)
    operation.toWire(call)

    expect(call.request).toEqual(before)
  })
})

describe('web-search tools are removed and named', () => {
  const ownFunction = {
    type: 'function',
    name: 'google_search',
    description: 'searches the web',
    parameters: { type: 'object', properties: { search_query: { type: 'string' } } },
  }

  test.each<[string, object]>([
    ['google_search', { type: 'google_search' }],
    ['url_context', { type: 'url_context' }],
    ['google_maps', { type: 'google_maps' }],
    ['web_search', { type: 'web_search' }],
    ['web_search_preview', { type: 'web_search_preview' }],
    ['file_search', { type: 'file_search', file_search_store_names: ['x'] }],
    ['other letters', { type: 'GOOGLE-Search' }],
    ['camel case', { type: 'urlContext' }],
    ['a member instead of a type', { google_search: {} }],
    ['a camel-case member', { googleSearchRetrieval: { dynamicRetrievalConfig: {} } }],
    ['a type further inside', { type: 'retrieval', retrieval_types: ['vertex_ai_search'] }],
    ['a member further inside', { type: 'retrieval', source: [{ google_maps: {} }] }],
  ])('%s', (_case, tool) => {
    const call = sent({ tools: [ownFunction, tool, { type: 'code_execution' }] as never })

    expect(call.json['tools']).toEqual([ownFunction, { type: 'code_execution' }])
    expect(call.dropped).toEqual(['tools[1]'])
  })

  test('without any other tool the field goes too', () => {
    const call = sent({ tools: [{ type: 'google_search' }, { type: 'url_context' }] })

    expect(call.json).not.toHaveProperty('tools')
    expect(call.dropped).toEqual(['tools[0]', 'tools[1]'])
  })
})
