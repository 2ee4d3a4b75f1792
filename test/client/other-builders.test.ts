import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import { DASHSCOPE_IMAGE_MODELS, DASHSCOPE_RERANK_MODELS } from '../../src/catalog/models/dashscope-models.ts'
import { GEMINI_IMAGE_MODELS } from '../../src/catalog/models/gemini-models.ts'
import { OPENAI_IMAGE_MODELS } from '../../src/catalog/models/openai-models.ts'
import {
  chat,
  embedding,
  GatewayError,
  image,
  imageEdit,
  moderation,
  rerank,
  response,
  speech,
} from '../../src/client/builders/index.ts'
import { chatSchema } from '../../src/endpoints/chat/chat-schema.ts'
import { imagesEndpoint } from '../../src/endpoints/images/images-endpoint.ts'
import { moderationsEndpoint } from '../../src/endpoints/moderations/moderations-endpoint.ts'
import { rerankEndpoint } from '../../src/endpoints/rerank/rerank-endpoint.ts'
import { responsesSchema } from '../../src/endpoints/responses/responses-schema.ts'

const PICTURE = 'https://cdn.example.net/a.png'
const catalog = createCatalog([...DASHSCOPE_IMAGE_MODELS, ...GEMINI_IMAGE_MODELS, ...OPENAI_IMAGE_MODELS])

function faultOf(run: () => unknown): { code: string; param: string | undefined } {
  try {
    run()
  } catch (error) {
    if (GatewayError.isInstance(error)) return { code: error.code, param: error.param }
    throw error
  }
  throw new Error('nothing was thrown')
}

/** The gateway's own check of an image request, in the shape of its model. */
function accept(body: { readonly model: string }): void {
  const model = catalog.find(body.model)!
  imagesEndpoint.shapes!.get(model.protocol!)!.parse(JSON.parse(JSON.stringify(body)), model)
}

describe('moderation', () => {
  const draft = moderation('omni-moderation-latest').text('one', 'two')

  test('writes texts as a list, and parts as soon as there is an image', () => {
    expect(draft.build()).toEqual({ model: 'omni-moderation-latest', input: ['one', 'two'] })
    expect(draft.picture(PICTURE).build()).toEqual({
      model: 'omni-moderation-latest',
      input: [
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
        { type: 'image_url', image_url: { url: PICTURE } },
      ],
    })
  })

  test('makes what the gateway takes', () => {
    const model = createCatalog([{ id: 'omni-moderation-latest', kind: 'moderation', vendor: 'openai' }]).list()[0]!
    for (const body of [draft.build(), draft.picture(PICTURE).build()])
      expect(moderationsEndpoint.parse(body, model)).toEqual(body)
  })

  test('needs something to judge', () => {
    expect(faultOf(() => moderation('m').build())).toEqual({ code: 'invalid_request', param: 'input' })
  })
})

describe('rerank', () => {
  const draft = rerank('qw3-vl-rerank').query('a harbour').documents('a boat', { image: PICTURE })

  test('writes documents in order and the fields that were set, as the gateway reads them', () => {
    const model = createCatalog(DASHSCOPE_RERANK_MODELS).find('qw3-vl-rerank')!
    const body = draft.documents({ text: 'a quay' }).top(2).returnDocuments().build()

    expect(draft.build()).toEqual({
      ...{ model: 'qw3-vl-rerank', query: 'a harbour', documents: ['a boat', { image: PICTURE }] },
    })
    expect(body).toEqual({
      ...draft.build(),
      documents: [...draft.build().documents, { text: 'a quay' }],
      ...{ top_n: 2, return_documents: true },
    })
    expect(rerankEndpoint.parse(JSON.parse(JSON.stringify(body)), model)).toEqual(body)
  })

  test.each([0, -1, 1.5, Number.NaN])('takes no %d results', (count) => {
    expect(faultOf(() => draft.top(count))).toEqual({ code: 'invalid_request', param: 'top_n' })
  })

  test('needs a query and a document', () => {
    expect(faultOf(() => rerank('m').documents('a').build())).toEqual({ code: 'invalid_request', param: 'query' })
    expect(faultOf(() => rerank('m').query('a').build())).toEqual({ code: 'invalid_request', param: 'documents' })
  })
})

describe('response', () => {
  const tool = { type: 'function', name: 'find', parameters: { type: 'object' } } as const

  test('writes items in order and the fields that were set, as the gateway reads them', () => {
    const body = response('gmn-2.5-pro')
      .instructions('Be brief.')
      .user([
        { type: 'input_text', text: 'what is this?' },
        { type: 'input_image', image_url: PICTURE },
      ])
      .items({ type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'find', arguments: '{}' })
      .toolOutput('call_1', 'a boat')
      .tools(tool)
      .toolChoice('auto')
      .json({ name: 'boat', schema: { type: 'object' } })
      .reasoning({ effort: 'low', summary: 'auto' })
      .temperature(0.5)
      .topP(0.9)
      .maxOutputTokens(100)
      .store(false)
      .endUser('u1')
      .build()

    expect(body).toEqual({
      model: 'gmn-2.5-pro',
      instructions: 'Be brief.',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'what is this?' },
            { type: 'input_image', image_url: PICTURE },
          ],
        },
        { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'find', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_1', output: 'a boat' },
      ],
      tools: [tool],
      tool_choice: 'auto',
      text: { format: { type: 'json_schema', name: 'boat', schema: { type: 'object' }, strict: true } },
      reasoning: { effort: 'low', summary: 'auto' },
      temperature: 0.5,
      top_p: 0.9,
      max_output_tokens: 100,
      store: false,
      user: 'u1',
    })
    expect(responsesSchema().safeParse(body).success).toBe(true)
  })

  test('goes on from an answer, given by itself or by its id', () => {
    for (const answer of ['resp_1', { id: 'resp_1' }]) {
      const continued = response('cl-opus-4-7').continuing(answer)
      const body = { model: 'cl-opus-4-7', previous_response_id: 'resp_1' }
      expect(continued.build()).toEqual({ ...body, input: [] })
      expect(continued.user('go on').build()).toEqual({ ...body, input: [{ role: 'user', content: 'go on' }] })
    }
  })

  test('a half-built request can be shared', () => {
    const half = response('cl-opus-4-7').user('one')
    half.user('two')

    expect(half.build().input).toHaveLength(1)
  })

  test.each([
    ['temperature', () => response('m').temperature(2.1)],
    ['top_p', () => response('m').topP(-0.1)],
    ['max_output_tokens', () => response('m').maxOutputTokens(15)],
    ['input', () => response('m').instructions('Be brief.').build()],
  ])('names %s where it is out of bounds or missing', (param, run) => {
    expect(faultOf(run)).toEqual({ code: 'invalid_request', param })
  })
})

describe('chat', () => {
  test('writes what was said, in order, and the fields that were set', () => {
    const body = chat('cl-opus-4-7')
      .system('Be brief.')
      .user('hello')
      .assistant('yes?')
      .user('go on')
      .temperature(0.5)
      .stop('END')

    expect(body.maxTokens(10).json().build()).toEqual({
      model: 'cl-opus-4-7',
      stream: false,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'hello' },
        { role: 'assistant', content: 'yes?' },
        { role: 'user', content: 'go on' },
      ],
      temperature: 0.5,
      stop: ['END'],
      max_tokens: 10,
      response_format: { type: 'json_object' },
    })
  })

  test('writes tools, their answers and a schema as the gateway reads them', () => {
    const tool = { type: 'function', function: { name: 'find', parameters: { type: 'object' } } } as const
    const body = chat('gmn-2.5-pro')
      .user([
        { type: 'text', text: 'what is this?' },
        { type: 'image_url', image_url: { url: PICTURE } },
      ])
      .messages({
        role: 'assistant',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'find', arguments: '{}' } }],
      })
      .toolResult('c1', '3 hits')
      .tools(tool)
      .toolChoice('auto')
      .json({ name: 'boat', schema: { type: 'object' } })
      .topP(0.5)
      .presencePenalty(-2)
      .frequencyPenalty(2)
      .seed(1)
      .reasoningEffort('low')
      .endUser('u1')
      .stream()
      .build()

    expect(chatSchema().safeParse(body).success).toBe(true)
    expect(body).toMatchObject({ stream: true, stream_options: { include_usage: true }, tools: [tool] })
  })

  test('grows in branches that do not touch each other', () => {
    const trunk = chat('cl-opus-4-7').user('hello')
    const branch = trunk.user('and more')
    trunk.build().messages.push({ role: 'user', content: 'from outside' })

    expect(trunk.build().messages).toHaveLength(1)
    expect(branch.build().messages).toHaveLength(2)
  })

  test.each([
    ['temperature', () => chat('x').temperature(2.1)],
    ['temperature', () => chat('x').temperature(Number.NaN)],
    ['top_p', () => chat('x').topP(-0.1)],
    ['max_tokens', () => chat('x').maxTokens(0)],
    ['presence_penalty', () => chat('x').presencePenalty(3)],
    ['frequency_penalty', () => chat('x').frequencyPenalty(-3)],
    ['stop', () => chat('x').stop('1', '2', '3', '4', '5')],
    ['messages', () => chat('x').build()],
  ])('names %s when it is out of bounds', (param, run) => {
    expect(faultOf(run)).toEqual({ code: 'invalid_request', param })
  })
})

describe('image', () => {
  test('writes the multimodal shape', () => {
    const body = image('qw-image-2.0')
      .prompt('a boat')
      .reference(PICTURE)
      .size('1664*928')
      .seed(1)
      .watermark()
      .promptExtend(false)

    expect(body.negativePrompt('rain').build()).toEqual({
      model: 'qw-image-2.0',
      input: { messages: [{ role: 'user', content: [{ image: PICTURE }, { text: 'a boat' }] }] },
      parameters: { size: '1664*928', seed: 1, watermark: true, prompt_extend: false, negative_prompt: 'rain' },
    })
    expect(() => accept(body.build())).not.toThrow()
  })

  test('writes the interactions shape', () => {
    const body = image('gmn-3.1-flash-image-preview')
      .prompt('a boat')
      .reference({ mimeType: 'image/png', data: 'aGk=' })
      .size('2K')
      .aspectRatio('21:9')
      .thinking('high')
      .temperature(1)
      .system('Paint.')
      .continuing('v1_a')
      .build()

    expect(body).toEqual({
      model: 'gmn-3.1-flash-image-preview',
      input: [
        { type: 'image', mime_type: 'image/png', data: 'aGk=' },
        { type: 'text', text: 'a boat' },
      ],
      system_instruction: 'Paint.',
      response_format: { type: 'image', image_size: '2K', aspect_ratio: '21:9' },
      generation_config: { thinking_level: 'high', temperature: 1 },
      previous_interaction_id: 'v1_a',
    })
    expect(() => accept(body)).not.toThrow()
  })

  test("writes OpenAI's shape", () => {
    const body = image('gp-image-2')
      .prompt('a boat')
      .size('1536x864')
      .count(2)
      .format('webp', 80)
      .quality('hd')
      .endUser('u1')
    const whole = body.background('transparent').moderation('low').build()

    expect(whole).toEqual({
      model: 'gp-image-2',
      prompt: 'a boat',
      size: '1536x864',
      n: 2,
      output_format: 'webp',
      output_compression: 80,
      quality: 'hd',
      user: 'u1',
      background: 'transparent',
      moderation: 'low',
    })
    expect(() => accept(whole)).not.toThrow()
  })

  test('writes a stream in the shapes that have one', () => {
    const drawn = image('gp-image-2').prompt('a boat').stream(2).build()
    const interaction = image('gmn-2.5-flash-image').prompt('a boat').stream().build()

    expect(drawn).toEqual({ model: 'gp-image-2', prompt: 'a boat', stream: true, partial_images: 2 })
    expect(interaction).toEqual({ model: 'gmn-2.5-flash-image', input: 'a boat', stream: true })
    expect(image('gp-image-2').prompt('a boat').stream().build()).not.toHaveProperty('partial_images')
    expect(() => accept(drawn)).not.toThrow()
    expect(() => accept(interaction)).not.toThrow()
  })

  test.each<[string, () => unknown]>([
    ['input.messages[0].content', () => image('qw-image-edit').prompt('a').build()],
    ['references[0]', () => image('qw-image-2.0').prompt('a').reference('http://cdn.example.net/a.png')],
    ['prompt', () => image('gp-image-2').build()],
    ['prompt', () => image('qw-image-max').build()],
    ['prompt', () => image('gmn-2.5-flash-image').build()],
    ['size', () => image('gp-image-2').prompt('a').size('100x100').build()],
    ['n', () => image('gp-image-2').prompt('a').count(11).build()],
    [
      'partial_images',
      () =>
        image<string>('gp-image-2')
          .prompt('a')
          .stream(4 as 3)
          .build(),
    ],
    ['partial_images', () => image<string>('gmn-2.5-flash-image').prompt('a').stream(1)],
    ['stream', () => image<string>('qw-image-2.0').prompt('a').stream()],
    ['output_compression', () => image('gp-image-2').prompt('a').format('png', 80).build()],
    ['background', () => image('gp-image-2').prompt('a').format('jpeg').background('transparent').build()],
    ['generation_config.temperature', () => image('gmn-2.5-flash-image').temperature(3)],
    ['previous_interaction_id', () => image('gmn-2.5-flash-image').prompt('a').continuing('v1_a').store(false).build()],
  ])('names %s when it is missing or wrong', (param, run) => {
    expect(faultOf(run)).toEqual({ code: 'invalid_request', param })
  })

  test("takes a host's model with its shape, and asks for it", () => {
    const body = image('a-model-of-mine', { protocol: 'multimodal' }).prompt('a boat').size('any*thing').build()

    expect(body).toMatchObject({ model: 'a-model-of-mine', parameters: { size: 'any*thing' } })
    expect(faultOf(() => image('a-model-of-mine'))).toEqual({ code: 'model_not_configured', param: 'model' })
  })
})

describe('imageEdit', () => {
  const picture = new Blob(['\x89PNG…'])

  test('writes a form for any HTTP client', async () => {
    const form = await imageEdit('gp-image-2')
      .prompt('a sail')
      .image(picture)
      .image(picture)
      .mask(picture)
      .count(2)
      .form()

    expect([...form.keys()]).toEqual(['model', 'prompt', 'n', 'image[]', 'image[]', 'mask'])
    expect(form.get('n')).toBe('2')
  })

  test('writes a stream, whose form says so', async () => {
    const form = await imageEdit('gp-image-1').prompt('a sail').image(picture).stream(0).form()

    expect([form.get('stream'), form.get('partial_images')]).toEqual(['true', '0'])
  })

  test.each<[string, string, () => unknown]>([
    ['unsupported_parameter', 'stream', () => imageEdit<string>('de-2').prompt('a').image(picture).stream().build()],
    [
      'invalid_request',
      'partial_images',
      () =>
        imageEdit('gp-image-1')
          .prompt('a')
          .image(picture)
          .stream(-1 as 0)
          .build(),
    ],
    ['invalid_request', 'image', () => imageEdit('de-2').prompt('a').build()],
    ['invalid_request', 'image', () => imageEdit('de-2').prompt('a').image(picture).image(picture).build()],
    ['invalid_request', 'prompt', () => imageEdit('de-2').image(picture).build()],
    ['invalid_request', 'size', () => imageEdit<string>('de-2').prompt('a').image(picture).size('1536x1024').build()],
    [
      'unsupported_parameter',
      'output_format',
      () => imageEdit<string>('de-2').prompt('a').image(picture).format('webp').build(),
    ],
  ])('throws %s for %s', (code, param, run) => {
    expect(faultOf(run)).toEqual({ code, param })
  })
})

describe('embedding and speech', () => {
  test('write what was set', () => {
    expect(embedding('vy-4').input('a').input('b', 'c').dimensions(512).base64().build()).toEqual({
      model: 'vy-4',
      input: ['a', 'b', 'c'],
      dimensions: 512,
      encoding_format: 'base64',
    })
    expect(
      speech('qw3-tts-instruct-flash').text('hello').voice('alloy').instructions('softly').format('wav').build(),
    ).toEqual({
      model: 'qw3-tts-instruct-flash',
      input: 'hello',
      voice: 'alloy',
      instructions: 'softly',
      response_format: 'wav',
    })
    expect(speech('qw3-tts-flash').text('hello').events().build()).toEqual({
      model: 'qw3-tts-flash',
      input: 'hello',
      stream_format: 'sse',
    })
  })

  test.each<[string, string, () => unknown]>([
    ['invalid_request', 'input', () => embedding('vy-4').build()],
    ['invalid_request', 'dimensions', () => embedding<string>('vy-4').dimensions(300)],
    ['invalid_request', 'dimensions', () => embedding('text-embedding-v4').dimensions(4096)],
    ['invalid_request', 'dimensions', () => embedding('gmn-embedding-001').dimensions(3073)],
    ['invalid_request', 'dimensions', () => embedding('anything').dimensions(0)],
    ['invalid_request', 'input', () => speech('qw3-tts-flash').build()],
    ['invalid_request', 'voice', () => speech<string>('qw3-tts-flash').text('a').voice('Nobody').build()],
    [
      'invalid_request',
      'response_format',
      () => speech<string>('qw3-tts-instruct-flash').text('a').format('mp3').build(),
    ],
    [
      'unsupported_parameter',
      'instructions',
      () => speech<string>('qw3-tts-flash').text('a').instructions('softly').build(),
    ],
  ])('throw %s for %s', (code, param, run) => {
    expect(faultOf(run)).toEqual({ code, param })
  })
})
