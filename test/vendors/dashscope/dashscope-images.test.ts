import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defineModel } from '../../../src/catalog/model.ts'
import { DASHSCOPE_IMAGE_MODELS } from '../../../src/catalog/models/dashscope-models.ts'
import { readCallerJson } from '../../../src/core/json.ts'
import { multimodalImageEndpoint } from '../../../src/endpoints/images/images-endpoint.ts'
import type { MultimodalImageRequest } from '../../../src/endpoints/images/multimodal/multimodal-image-request.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import { NOW_MS, textOf, wireAnswer } from '../shared/vendor-call.ts'

const KEY = 'sk-test-0123456789abcdef'
const PATH = '/api/v1/services/aigc/multimodal-generation/generation'
const vendor = dashscope({ apiKey: KEY })
const multimodal = vendor.images!.multimodal!
const MODELS = DASHSCOPE_IMAGE_MODELS.map(defineModel)

/** Returns a call with the request parsed from the caller's bytes. */
function callOf(json: string): VendorCall<MultimodalImageRequest> {
  const { bytes, value } = readCallerJson(Buffer.from(json))
  const { model: name } = value as MultimodalImageRequest
  const model = MODELS.find(({ id, aliases }) => id === name || aliases.includes(name))!
  const request = multimodalImageEndpoint.parse(value, model)
  return { request, bytes, model, publicModel: name, apiKey: KEY, stream: false, nowMs: NOW_MS }
}

function sent(json: string): string {
  const { body } = multimodal.toWire(callOf(json))
  return textOf([body as Uint8Array | string])
}

const INPUT = '"input":{"messages":[{"role":"user","content":[{"text":"A \\"red\\" bridge"}]}]}'
const EDIT =
  '"input":{"messages":[{"role":"user","content":[{"image":"https://cdn.example.net/1.png"},{"text":"Make it violet"}]}]}'

describe('a multimodal request on its way to DashScope', () => {
  it('goes to the native API, waits for its answer, and carries the key', () => {
    const wire = multimodal.toWire(callOf(`{"model":"qw-image-2.0",${INPUT}}`))

    expect(wire).toMatchObject({ path: PATH, dropped: [] })
    expect(wire.headers).toEqual([
      'content-type',
      'application/json',
      'accept',
      'application/json',
      'accept-encoding',
      'identity',
      'authorization',
      `Bearer ${KEY}`,
    ])
  })

  it.each([
    ['https://proxy.example/ali', `/ali${PATH}`],
    ['https://proxy.example/ali/compatible-mode/v1', `/ali${PATH}`],
    ['https://ws-1.ap-southeast-1.maas.aliyuncs.com/api/v1/', PATH],
  ])('below %s', (baseURL, path) => {
    const { images, chat } = dashscope({ apiKey: KEY, baseURL })
    const chatPath = path.replace(PATH, '/compatible-mode/v1/chat/completions')

    expect(images?.multimodal?.toWire(callOf(`{"model":"qw-image-2.0",${INPUT}}`)).path).toBe(path)
    expect(
      chat?.toWire({ ...callOf(`{"model":"qw-image-2.0",${INPUT}}`), request: { model: 'm', messages: [] } }).path,
    ).toBe(chatPath)
  })

  it.each<[what: string, given: string, expected: string]>([
    [
      'an edit changes in its model id only, blanks and all',
      `{ "model" : "qw-image-edit" ,\n ${EDIT}, "extra": 1.0, "big": 12345678901234567890 }`,
      `{ "model" : "qwen-image-edit" ,\n ${EDIT}, "extra": 1.0, "big": 12345678901234567890 }`,
    ],
    [
      'an edit at a model that does both gets no size',
      `{"model":"qw-image-2.0-pro",${EDIT},"parameters":{"seed":5}}`,
      `{"model":"qwen-image-2.0-pro",${EDIT},"parameters":{"seed":5}}`,
    ],
    [
      'a size that is given stays',
      `{"model":"qw-image-max",${INPUT},"parameters":{"size":"928*1664","n":1}}`,
      `{"model":"qwen-image-max",${INPUT},"parameters":{"size":"928*1664","n":1}}`,
    ],
    [
      'text to image without parameters gets the size that is billed',
      `{"model":"qw-image-2.0",${INPUT}}`,
      `{"model":"qwen-image-2.0","parameters":{"size":"1024*1024"},${INPUT}}`,
    ],
    [
      'text to image without a size gets it beside the other parameters',
      `{"parameters": { "watermark":false}, "model":"qw-image-2.0",${INPUT}}`,
      `{"parameters": {"size":"1024*1024", "watermark":false}, "model":"qwen-image-2.0",${INPUT}}`,
    ],
    [
      'empty parameters get it alone',
      `{${INPUT},"model":"qw-image-max","parameters":{ }}`,
      `{${INPUT},"model":"qwen-image-max","parameters":{"size":"1024*1024" }}`,
    ],
    [
      'parameters that the model does not have go, and the others stay',
      `{"model":"qw-image-edit",${EDIT},"parameters":{"size":"1024*1024","seed":5,"prompt_extend":false}}`,
      `{"model":"qwen-image-edit",${EDIT},"parameters":{"seed":5}}`,
    ],
    [
      'a size of null is one that is missing',
      `{"model":"qw-image-max",${INPUT},"parameters":{"size":null,"seed":5}}`,
      `{"model":"qwen-image-max",${INPUT},"parameters":{"seed":5,"size":"1024*1024"}}`,
    ],
    [
      'and so are parameters of null',
      `{"model":"qw-image-max",${INPUT},"parameters":null}`,
      `{"model":"qwen-image-max",${INPUT},"parameters":{"size":"1024*1024"}}`,
    ],
    [
      'a picture of null does not go beside a text',
      `{"model":"qw-image-max","input":{"messages":[{"role":"user","content":[{"text":"x","image":null}]}]},"parameters":{"size":"1328*1328"}}`,
      `{"model":"qwen-image-max","input":{"messages":[{"role":"user","content":[{"text":"x"}]}]},"parameters":{"size":"1328*1328"}}`,
    ],
    [
      'the vendor id is taken for the public one',
      `{"model":"qwen-image-max",${INPUT},"parameters":{"size":"1328*1328"}}`,
      `{"model":"qwen-image-max",${INPUT},"parameters":{"size":"1328*1328"}}`,
    ],
    [
      'names inside of texts and of nested objects are not changed',
      `{"note":{"model":"x","parameters":{}},"text":"\\"model\\":\\"y\\"","model":"qw-image-max",${INPUT}}`,
      `{"note":{"model":"x","parameters":{}},"text":"\\"model\\":\\"y\\"","model":"qwen-image-max","parameters":{"size":"1024*1024"},${INPUT}}`,
    ],
  ])('%s', (_, given, expected) => {
    expect(sent(given)).toBe(expected)
  })

  it.each<[what: string, given: string]>([
    ['the model', `{"model":"qw-image-edit-max","model":"qw-image-max",${INPUT}}`],
    ['the model, once with an escape', `{"mod\\u0065l":"qw-image-edit-max","model":"qw-image-max",${INPUT}}`],
    ['the size', `{"model":"qw-image-max",${INPUT},"parameters":{"size":"2048*2048","size":"1024*1024"}}`],
    [
      'an image',
      `{"model":"qw-image-edit","input":{"messages":[{"role":"user","content":[{"image":"http://169.254.169.254/","image":"https://cdn.example.net/1.png"},{"text":"x"}]}]}}`,
    ],
    ['anything else', `{"model":"qw-image-max","a":[1,{"b":true,"b":null}],${INPUT}}`],
  ])('a body that names %s twice goes out as it was read, with each name once', (_, given) => {
    const { request, model } = callOf(given)
    const body = JSON.parse(sent(given)) as Record<string, unknown>

    const size = model.id === 'qw-image-edit' ? {} : { parameters: { size: '1024*1024' } }
    expect(body).toEqual({ ...request, ...size, model: model.upstream })
    expect(sent(given)).toBe(JSON.stringify(body))
  })

  it('is serialized again with one size if parameters have an escaped name', () => {
    const given = `{"model":"qw-image-max",${INPUT},"p\\u0061rameters":{"seed":1}}`

    expect(sent(given)).toBe(`{"model":"qwen-image-max",${INPUT},"parameters":{"seed":1,"size":"1024*1024"}}`)
  })

  it('is serialized again without bytes, and does not change the request', () => {
    const call = callOf(`{"model":"qw-image-max",${INPUT},"parameters":{"seed":1}}`)
    const before = structuredClone(call.request)
    const { body } = multimodal.toWire({ ...call, bytes: undefined })

    expect(JSON.parse(body as string)).toEqual({
      ...before,
      model: 'qwen-image-max',
      parameters: { seed: 1, size: '1024*1024' },
    })
    expect(call.request).toEqual(before)
  })

  it('is serialized again after a byte order mark', () => {
    const call = callOf(`{"model":"qw-image-max",${INPUT},"parameters":{"size":"928*1664"}}`)
    const { body } = multimodal.toWire({ ...call, bytes: Buffer.from(`\ufeff${JSON.stringify(call.request)}`) })

    expect(JSON.parse(body as string)).toEqual({ ...call.request, model: 'qwen-image-max' })
  })

  it('whatever else it holds, changes in its model id and size only', () => {
    // The gateway has already rejected bodies with a member called __proto__.
    const members = fc
      .dictionary(fc.string(), fc.jsonValue())
      .filter((members) => !JSON.stringify(members).includes('"__proto__"'))
    fc.assert(
      fc.property(members, fc.boolean(), fc.nat(3), (extra, hasOther, indent) => {
        const { model: _model, input: _input, parameters: _parameters, ...others } = extra
        const request = {
          ...others,
          ...(hasOther ? { parameters: { other: others } } : {}),
          ...(JSON.parse(`{"model":"qw-image-max",${INPUT}}`) as object),
          last: others,
        }
        const expected = {
          ...request,
          model: 'qwen-image-max',
          parameters: { ...(hasOther ? { other: others } : {}), size: '1024*1024' },
        }

        expect(JSON.parse(sent(JSON.stringify(request, null, indent)))).toEqual(JSON.parse(JSON.stringify(expected)))
      }),
    )
  })
})

describe('an answer of DashScope', () => {
  const call = callOf(`{"model":"qw-image-2.0",${INPUT}}`)
  const URL_1 = 'https://dashscope-result-sgp.oss-ap-southeast-1.aliyuncs.com/1.png?Expires=1795255200&Signature=a%2Fb'
  const URL_2 = 'https://dashscope-result-sgp.oss-ap-southeast-1.aliyuncs.com/2.png?Expires=1795255200&Signature=c'
  const choice = (...urls: string[]) => ({
    finish_reason: 'stop',
    message: { role: 'assistant', content: urls.map((image) => ({ image })) },
  })
  const answer = (choices: unknown, usage?: unknown) =>
    Buffer.from(JSON.stringify({ request_id: '41d0', output: { choices }, usage }, null, 1))

  it('passes byte for byte, its links unread', () => {
    const body = answer([choice(URL_1)], { image_count: 1, width: 1024, height: 1536 })
    const chunks = [body.subarray(0, 50), body.subarray(50)]

    const relayed = multimodal.fromWire(chunks, call)

    expect(relayed).toEqual({ chunks, usage: { images: 1 } })
    expect(relayed?.chunks[0]).toBe(chunks[0])
  })

  it.each<[what: string, choices: unknown, usage: unknown, images: number]>([
    ['image_count', [choice(URL_1)], { image_count: 1 }, 1],
    ['output_image_count, of newer models', [choice(URL_1)], { output_image_count: 1, output_width: 1024 }, 1],
    ['a count of more than is seen', [choice(URL_1)], { image_count: 2 }, 2],
    ['a count of 0', [choice(URL_1)], { image_count: 0 }, 0],
    ['a count that cannot be, for the meter to judge', [choice(URL_1)], { image_count: -1 }, -1],
    ['a count that is text, which counts as unsaid', [choice(URL_1)], { image_count: '12' }, 1],
    ['no usage', [choice(URL_1)], undefined, 1],
    ['usage without a count, and two pictures in one choice', [choice(URL_1, URL_2)], { width: 1 }, 2],
    ['no usage, and two choices with a picture each', [choice(URL_1), choice(URL_2)], null, 2],
    ['text beside the picture', [{ message: { content: [{ text: 'ok' }, { image: URL_1 }] } }], undefined, 1],
  ])('is counted by %s', (_, choices, usage, images) => {
    expect(multimodal.fromWire([answer(choices, usage)], call)?.usage).toEqual({ images })
  })

  it('is relayed without a charge if the vendor reports no image', () => {
    const body = answer([choice()], { image_count: 0 })

    expect(multimodal.fromWire([body], call)).toEqual({ chunks: [body], usage: { images: 0 }, isRefusal: true })
  })

  it.each<[what: string, body: string, kind: string]>([
    ['an error with 200', '{"code":"InvalidParameter","message":"bad","request_id":"r"}', 'caller'],
    ['a refused prompt with 200', '{"code":"DataInspectionFailed","message":"bad","request_id":"r"}', 'caller'],
    ['a suspected copy with 200', '{"code":"IPInfringementSuspect","message":"bad","request_id":"r"}', 'caller'],
    ['arrears with 200', '{"code":"Arrearage","message":"bad","request_id":"r"}', 'operator'],
    ['throttling with 200', '{"code":"Throttling","message":"bad","request_id":"r"}', 'rate_limited'],
    ['a fault with 200', '{"code":"InternalError.Algo","message":"bad","request_id":"r"}', 'unavailable'],
    ['no JSON', '<html>', 'invalid_response'],
    ['half of the JSON', '{"output":{"choices":[', 'invalid_response'],
    ['an empty body', '', 'invalid_response'],
    ['a list', '[]', 'invalid_response'],
    ['no output', '{"request_id":"r"}', 'invalid_response'],
    ['no choices', '{"output":{}}', 'invalid_response'],
    ['a choice that is none', '{"output":{"choices":[null,1]}}', 'invalid_response'],
    ['content that is text', '{"output":{"choices":[{"message":{"content":"ok"}}]}}', 'invalid_response'],
    ['an empty link', '{"output":{"choices":[{"message":{"content":[{"image":""}]}}]}}', 'invalid_response'],
    ['no picture where one is counted', '{"output":{"choices":[]},"usage":{"image_count":1}}', 'invalid_response'],
  ])('is not an answer if it is %s', (_, body, kind) => {
    expect(multimodal.fromWire([Buffer.from(body)], call)).toBeUndefined()
    expect(vendor.errorFrom(wireAnswer(body, 200), NOW_MS).kind).toBe(kind)
  })
})

describe('failures of the native API', () => {
  it.each<[status: number, code: string, message: string, kind: string]>([
    [400, 'InvalidParameter', 'num_images_per_prompt must be 1.', 'caller'],
    [400, 'InvalidParameter', 'lack of image or text', 'caller'],
    [400, 'InvalidParameter', 'download image failed', 'caller'],
    [400, 'InvalidParameter', 'url error, check url!', 'operator'],
    [400, 'DataInspectionFailed', 'Input data may contain inappropriate content.', 'caller'],
    [400, 'IPInfringementSuspect', 'Input data is suspected of being involved in IP infringement.', 'caller'],
    [400, 'BadRequest.InputDownloadFailed', 'Failed to download.', 'caller'],
    [400, 'Arrearage', 'Access denied.', 'operator'],
    [401, 'InvalidApiKey', 'Invalid API-key provided.', 'operator'],
    [403, 'AccessDenied', 'Current user api does not support asynchronous calls.', 'operator'],
    [403, 'AllocationQuota.FreeTierOnly', 'The free tier of the model has been exhausted.', 'operator'],
    [404, 'ModelNotFound', 'Model not exist.', 'operator'],
    [429, 'Throttling', 'Requests throttling triggered.', 'rate_limited'],
    [429, 'Throttling.RateQuota', 'Requests rate limit exceeded.', 'rate_limited'],
    [429, 'PostpaidBillOverdue', 'The bill is overdue.', 'operator'],
    [500, 'RequestTimeOut', 'Request timed out.', 'timeout'],
    [500, 'InternalError.Algo', 'An error.', 'unavailable'],
    [503, 'ModelUnavailable', 'Busy.', 'unavailable'],
  ])('%i %s "%s" is a matter of: %s', (status, code, message, kind) => {
    const failure = vendor.errorFrom(wireAnswer({ code, message, request_id: 'r-1' }, status), NOW_MS)

    expect(failure).toMatchObject({ kind, status, code, message, requestId: 'r-1' })
  })

  it.each<[where: string, body: unknown, headers: Record<string, string>, requestId: string | undefined]>([
    ['the compatible mode', { error: { message: 'x', code: 'y' }, request_id: 'r-2' }, {}, 'r-2'],
    ['a header', { code: 'y', message: 'x' }, { 'x-request-id': 'r-3' }, 'r-3'],
    ['nowhere', 'busy', {}, undefined],
    ['no place for it, being a number', { code: 'y', message: 'x', request_id: 4 }, {}, undefined],
    ['no place for it, being a text', { code: 'y', message: 'x', request_id: 'see <b>here</b>' }, {}, undefined],
  ])('have the id of the vendor from %s', (_, body, headers, requestId) => {
    expect(vendor.errorFrom(wireAnswer(body, 400, headers), NOW_MS).requestId).toBe(requestId)
  })
})
