import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import type { MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'
import { type AmazonBedrockOptions, amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { anthropicBedrock } from '../../../src/vendors/anthropic/anthropic.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import { bodyOf, callFromRequest, callFromText, NOW_MS, wireAnswer } from '../shared/vendor-call.ts'

const KEY = 'bedrock-key-0123456789'
const GPT = 'openai.gpt-oss-120b-1:0'

function chatTo(vendor: ReturnType<typeof amazonBedrock>, fields: Partial<ChatRequest> = {}, upstream = GPT) {
  const request = { model: 'public', messages: [{ role: 'user', content: 'Hi' }], ...fields } as ChatRequest
  return vendor.chat!.toWire(callFromText<ChatRequest>(JSON.stringify(request), { upstream, apiKey: KEY }))
}

describe('addresses', () => {
  for (const [options, origin, path] of [
    [{ region: 'eu-central-1' }, 'https://bedrock-runtime.eu-central-1.amazonaws.com', '/openai/v1/chat/completions'],
    [{ region: 'us-gov-west-1' }, 'https://bedrock-runtime.us-gov-west-1.amazonaws.com', '/openai/v1/chat/completions'],
    [
      { region: 'eusc-de-east-1' },
      'https://bedrock-runtime.eusc-de-east-1.amazonaws.eu',
      '/openai/v1/chat/completions',
    ],
    [{ region: 'cn-north-1' }, 'https://bedrock-runtime.cn-north-1.amazonaws.com.cn', '/openai/v1/chat/completions'],
    [
      { region: 'us-east-1', service: 'bedrock-mantle' },
      'https://bedrock-mantle.us-east-1.api.aws',
      '/v1/chat/completions',
    ],
    [{ endpoint: 'https://vpce-1.example/aws/' }, 'https://vpce-1.example', '/aws/openai/v1/chat/completions'],
  ] as const) {
    it(`follow from ${JSON.stringify(options)}`, () => {
      const vendor = amazonBedrock({ apiKey: KEY, ...options })
      const wire = chatTo(vendor)

      expect(vendor.origin).toBe(origin)
      expect(wire.path).toBe(path)
      expect(bodyOf(wire.body)['model']).toBe(GPT)
      expect(wire.headers).toContain(`Bearer ${KEY}`)
    })
  }

  it('reject unusable values with the option to set', () => {
    expect(() => amazonBedrock({ apiKey: KEY })).toThrow('amazonBedrock: set region or endpoint')
    expect(() => amazonBedrock({ region: 'us-east-1', endpoint: 'https://a.example' })).toThrow('only one of')
    for (const region of ['us_east_1', 'mars', 'us-east-1.evil.example', ''])
      expect(() => amazonBedrock({ region })).toThrow(/region must be an AWS region, such as eu-central-1/)
    expect(() => amazonBedrock({ region: 'us-east-1', service: 'other' } as never)).toThrow(/service must be/)
    expect(() => amazonBedrock({ region: 'us-east-1', apikey: KEY } as AmazonBedrockOptions)).toThrow(
      /apikey is unknown; did you mean apiKey\?/,
    )
    expect(() => anthropicBedrock({ apiKey: KEY })).toThrow('anthropicBedrock: set region or endpoint')
  })
})

describe('Claude in Bedrock', () => {
  const request = { model: 'public', max_tokens: 50, messages: [{ role: 'user' as const, content: 'Hi' }] }
  const call = callFromRequest(request, { upstream: 'eu.anthropic.claude-opus-4-5-20251101-v1:0', apiKey: KEY })

  it('is asked in its own dialect, with the key as a bearer', () => {
    const vendor = anthropicBedrock({ apiKey: KEY, region: 'eu-central-1' })
    const messages = vendor.messages!.toWire(call as unknown as VendorCall<MessagesRequest>)
    const count = vendor.messages!.tokenCount.toWire(call as unknown as VendorCall<MessagesRequest>)

    expect(vendor.origin).toBe('https://bedrock-runtime.eu-central-1.amazonaws.com')
    expect(messages.path).toBe('/anthropic/v1/messages')
    expect(count.path).toBe('/anthropic/v1/messages/count_tokens')
    expect(vendor.chat!.toWire(call).path).toBe('/anthropic/v1/messages')
    for (const { headers } of [messages, vendor.chat!.toWire(call)]) {
      expect(headers.slice(0, 4)).toEqual(['authorization', `Bearer ${KEY}`, 'anthropic-version', '2023-06-01'])
      expect(headers).not.toContain('x-api-key')
    }
  })

  it('has the abilities of the model behind the id', () => {
    const vendor = anthropicBedrock({ apiKey: KEY, region: 'eu-central-1' })

    // The older family has a budget for thinking and accepts a temperature; the newest one has neither.
    const wire = vendor.chat!.toWire({ ...call, request: { ...request, temperature: 0.5 } })
    expect(bodyOf(wire.body)).toMatchObject({ temperature: 0.5 })
    expect(wire.dropped).toEqual([])
  })
})

describe('ids that the public catalog lists under another one', () => {
  const { catalogIds } = amazonBedrock({ region: 'us-east-1' })
  for (const [id, listed] of [
    ['amazon.nova-pro-v1:0', ['amazon.nova-pro-v1:0']],
    ['apac.amazon.nova-pro-v1:0', ['apac.amazon.nova-pro-v1:0', 'amazon.nova-pro-v1:0']],
    ['us-gov.anthropic.claude-x', ['us-gov.anthropic.claude-x', 'anthropic.claude-x']],
    ['arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.a.b', ['eu.a.b', 'a.b']],
    ['arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model/amazon.x-v1:0', ['amazon.x-v1:0']],
    [
      'arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc12',
      ['arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc12'],
    ],
  ] as const) {
    it(id, () => expect(catalogIds!(id)).toEqual(listed))
  }

  it('cover only Claude at the Messages API', () => {
    const claude = anthropicBedrock({ region: 'us-east-1' })

    expect(claude.catalogIds!('amazon.nova-pro-v1:0')).toEqual([])
    expect(claude.catalogIds!('us.anthropic.claude-opus-4-8')).toEqual([
      'us.anthropic.claude-opus-4-8',
      'anthropic.claude-opus-4-8',
    ])
  })
})

describe('failures', () => {
  const named = (name: string, status: number, message: string) =>
    wireAnswer({ message }, status, {
      'x-amzn-errortype': `${name}:http://internal.amazon.com/x`,
      'x-amzn-requestid': 'r1',
    })
  const vendors = {
    converse: amazonBedrock({ region: 'us-east-1', apiKey: KEY }),
    messages: anthropicBedrock({ region: 'us-east-1', apiKey: KEY }),
  }

  for (const [name, status, message, expected] of [
    ['ThrottlingException', 429, 'Too many tokens, please wait before trying again.', { kind: 'rate_limited' }],
    ['ThrottlingException', 400, 'Rate exceeded', { kind: 'rate_limited' }],
    ['ModelNotReadyException', 429, 'The model is loading.', { kind: 'rate_limited' }],
    ['ServiceQuotaExceededException', 400, 'Quota.', { kind: 'operator', concerns: 'key' }],
    ['AccessDeniedException', 403, 'You are not authorized.', { kind: 'operator', concerns: 'key' }],
    [
      'AccessDeniedException',
      403,
      "You don't have access to the model with the specified model ID.",
      { kind: 'operator', concerns: 'model' },
    ],
    [
      'ExpiredTokenException',
      403,
      'The security token included in the request is expired',
      { kind: 'operator', concerns: 'key', message: expect.stringContaining('renew the session') },
    ],
    [
      'InvalidSignatureException',
      403,
      'Credential should be scoped to a valid region.',
      { kind: 'operator', concerns: 'key', message: expect.stringContaining('set AWS_REGION') },
    ],
    ['ValidationException', 400, 'max_tokens must be above 0', { kind: 'caller', status: 400 }],
    [
      'ValidationException',
      400,
      "Invocation of model ID x with on-demand throughput isn't supported. Retry",
      { kind: 'operator', concerns: 'model', message: expect.stringContaining('inference profile') },
    ],
    [
      'ValidationException',
      400,
      'The provided model identifier is invalid.',
      { kind: 'operator', concerns: 'model', message: expect.stringContaining('region') },
    ],
    [
      'ValidationException',
      400,
      'The model isn’t supported on this route',
      { kind: 'operator', concerns: 'model', message: expect.stringContaining('set protocol') },
    ],
    [
      'ValidationException',
      400,
      'Operation not allowed',
      { kind: 'operator', concerns: 'key', message: expect.stringContaining('support of AWS') },
    ],
    [
      'ValidationException',
      400,
      'Your account is not authorized to invoke this API operation.',
      { kind: 'operator', concerns: 'key' },
    ],
    [
      'ValidationException',
      400,
      "1 validation error detected: Value 'your account is not authorized' at 'toolConfig.tools.1.member.toolSpec.name' failed",
      { kind: 'caller' },
    ],
    [
      'ValidationException',
      400,
      "2 validation errors detected: Value 'legacy model' at 'toolConfig.tools.1.member.toolSpec.name' failed",
      { kind: 'caller' },
    ],
    [
      'ValidationException',
      400,
      'Malformed input request: #/tool_choice/type: inference profile is not a valid enum value, please reformat',
      { kind: 'caller' },
    ],
    [
      'ValidationException',
      400,
      "The model returned the following errors: tools.0: Input tag 'inference profile' found using 'type' does not match any of the expected tags",
      { kind: 'caller' },
    ],
    [
      'ValidationException',
      400,
      'The model returned the following errors: too many tokens, please wait: Extra inputs are not permitted',
      { kind: 'caller' },
    ],
    ['ResourceNotFoundException', 404, 'gone', { kind: 'operator', concerns: 'model' }],
    ['ModelTimeoutException', 408, 'slow', { kind: 'timeout' }],
    ['ModelErrorException', 424, 'bad', { kind: 'unavailable' }],
    ['InternalServerException', 500, 'bad', { kind: 'unavailable' }],
    ['ServiceUnavailableException', 503, 'busy', { kind: 'unavailable' }],
    ['NeverHeardOfException', 418, 'tea', { kind: 'operator' }],
  ] as const) {
    for (const [route, vendor] of Object.entries(vendors)) {
      it(`${name} ${status} “${message.slice(0, 30)}” is ${expected.kind} by ${route}`, () => {
        const failure = vendor.errorFrom(named(name, status, message), NOW_MS)
        expect(failure).toMatchObject({ status, code: name, requestId: 'r1', ...expected })
      })
    }
  }

  it('in the dialects are read as there', () => {
    const openai = { error: { message: 'bad field', type: 'invalid_request_error', param: 'n', code: null } }
    const messages = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }

    expect(vendors.converse.errorFrom(wireAnswer(openai, 400), NOW_MS)).toMatchObject({ kind: 'caller', param: 'n' })
    expect(vendors.messages.errorFrom(wireAnswer(messages, 529), NOW_MS)).toMatchObject({ kind: 'unavailable' })
  })

  it('blame the operator if a model lacks the dialect of its row', () => {
    const body = {
      error: {
        code: 'validation_error',
        message: "The model 'openai.gpt-5.6-terra' does not support the '/v1/chat/completions' API",
        param: null,
        type: 'invalid_request_error',
      },
    }

    expect(vendors.converse.errorFrom(wireAnswer(body, 400), NOW_MS)).toMatchObject({ kind: 'operator' })

    const message = `Invalid 'tools[0].type': "does not support the '/v1' API"`
    const quoting = { error: { ...body.error, message } }
    expect(vendors.converse.errorFrom(wireAnswer(quoting, 400), NOW_MS)).toMatchObject({ kind: 'caller' })
  })

  it('tell how wrong the clock is, by the date of the answer', () => {
    const expired = (offsetMs: number, headers: Record<string, string> = {}) =>
      vendors.converse.errorFrom(
        wireAnswer({ message: 'Signature expired: 20261120T095000Z is now earlier than …' }, 403, {
          'x-amzn-errortype': 'InvalidSignatureException',
          date: new Date(NOW_MS + offsetMs).toUTCString(),
          ...headers,
        }),
        NOW_MS,
      )

    expect(expired(600_000)).toMatchObject({
      clockOffsetMs: 600_000,
      message: expect.stringMatching(/\(the clock of this machine is 600 s behind: set it\)$/),
    })
    expect(expired(-600_000).message).toContain('600 s ahead')
    expect(expired(60_000).clockOffsetMs).toBeUndefined()
    expect(expired(600_000, { age: '5' }).clockOffsetMs).toBeUndefined()
  })

  it('repeat no key and no session token', () => {
    const text = `The Canonical String should have been 'POST x-amz-security-token:SESSION-CANARY' for ${KEY}`
    const { message } = vendors.converse.errorFrom(named('InvalidSignatureException', 403, text), NOW_MS)

    expect(message).not.toMatch(/CANARY|0123456789/)
  })
})
