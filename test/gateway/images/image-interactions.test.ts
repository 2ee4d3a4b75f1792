import { Buffer } from 'node:buffer'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { drawPicture, type PictureFormat } from '../../../src/testing/sandbox/files/draw-image.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { imageHeader } from '../../../src/wire/image-header.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { IMAGES } from './image-requests.ts'

const MODEL = 'gmn-3.1-flash-image-preview'
const UPSTREAM = 'gemini-3.1-flash-image-preview'

/** Parts of an answer that a client of the Interactions API reads. */
interface Interaction {
  readonly id: string
  readonly object: string
  readonly model: string
  readonly status: string
  readonly steps: readonly {
    readonly type: string
    readonly signature?: string
    readonly content?: readonly { readonly type: string; readonly mime_type?: string; readonly data?: string }[]
  }[]
  readonly usage: Readonly<Record<string, unknown>>
}

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
beforeEach(() => started.sandbox.reset())
afterAll(() => started.close())

/** Images may be in any step, so all blocks of all steps are searched. */
function pictures(interaction: Interaction) {
  return interaction.steps
    .flatMap(({ content }) => content ?? [])
    .filter(({ type }) => type === 'image')
    .map(({ mime_type, data = '' }) => ({ mime_type, ...imageHeader([Buffer.from(data, 'base64')]) }))
}

async function create(body: object): Promise<Interaction> {
  const answer = await started.post(IMAGES, body)
  expect(answer.status).toBe(200)
  return (await answer.json()) as Interaction
}

function reference(format: PictureFormat): object {
  const data = Buffer.from(drawPicture({ width: 32, height: 32, format, seed: format })).toString('base64')
  return { type: 'image', mime_type: `image/${format}`, data }
}

/** Google API reference, "Interactions: create": bodies as its JavaScript package writes them. */
describe('a body of the Interactions API', () => {
  test('sends every setting of text to image to the vendor unchanged, except the model', async () => {
    const body = {
      model: MODEL,
      input: 'A paper crane on a windowsill, morning light',
      system_instruction: 'Always use muted colours.',
      response_format: { type: 'image', mime_type: 'image/jpeg', aspect_ratio: '21:9', image_size: '2K' },
      generation_config: { thinking_level: 'high', thinking_summaries: 'auto', seed: 7 },
      labels: { team: 'design' },
      store: true,
    }

    const answer = await create(body)

    expect(started.sandbox.requests[0]?.path).toBe('/v1beta/interactions')
    expect(started.sandbox.requests[0]?.body).toEqual({ ...body, model: UPSTREAM })
    expect(answer).toMatchObject({ object: 'interaction', model: MODEL, status: 'completed' })
    expect(answer.steps.map(({ type }) => type)).toEqual(['thought', 'model_output'])
    expect(pictures(answer)).toEqual([
      expect.objectContaining({ mime_type: 'image/jpeg', format: 'jpeg', width: 3168, height: 1344 }),
    ])
    expect(answer.usage).toMatchObject({ output_tokens_by_modality: [{ modality: 'image', tokens: 1680 }] })
  })

  test('sends reference images, and then a follow-up turn', async () => {
    const format = { type: 'image', aspect_ratio: '4:3', image_size: '1K' }
    const input = [
      { type: 'text', text: 'Put the mug from picture 1 on the desk of picture 2' },
      reference('png'),
      reference('jpeg'),
    ]

    const first = await create({ model: MODEL, input, response_format: format })
    const second = await create({
      model: MODEL,
      input: 'Make the mug green',
      previous_interaction_id: first.id,
      response_format: format,
    })

    expect(started.sandbox.requests[0]?.body).toEqual({ model: UPSTREAM, input, response_format: format })
    expect(started.sandbox.requests[1]?.body).toMatchObject({ previous_interaction_id: first.id })
    expect(pictures(first)).toEqual([expect.objectContaining({ width: 1200, height: 896 })])
    expect(second.id).not.toBe(first.id)
  })

  test('loses a service tier, which the operator would pay for, and the answer says so', async () => {
    const answer = await started.post(IMAGES, { model: MODEL, input: 'a crane', service_tier: 'priority' })
    await answer.arrayBuffer()

    expect(started.sandbox.requests[0]?.body).not.toHaveProperty('service_tier')
    expect(answer.headers.get('x-signalbox-dropped')).toBe('service_tier')
  })

  test("accepts the vendor's own model id", async () => {
    const answer = await create({ model: UPSTREAM, input: 'a crane' })

    // Without a format the vendor answers with text as well, in a step of its own.
    expect(answer.model).toBe(UPSTREAM)
    expect(answer.steps.map(({ type }) => type)).toEqual(['model_output', 'model_output'])
    expect(pictures(answer)).toHaveLength(1)
  })

  test('sends 512px, which the vendor calls 512', async () => {
    const answer = await create({
      model: MODEL,
      input: 'a crane',
      response_format: { type: 'image', image_size: '512px' },
    })

    expect(started.sandbox.requests[0]?.body).toMatchObject({ response_format: { image_size: '512' } })
    expect(pictures(answer)).toEqual([expect.objectContaining({ width: 512, height: 512 })])
  })

  test('streamed: the events of the vendor, in its order, with the public model', async () => {
    const answer = await started.post(IMAGES, { model: MODEL, input: 'a crane', stream: true })
    const frames = (await answer.text()).trimEnd().split('\n\n')
    const events = frames.slice(0, -1).map((frame) => {
      const [name = '', data = ''] = frame.split('\n')
      return {
        name: name.replace('event: ', ''),
        data: JSON.parse(data.replace('data: ', '')) as Record<string, unknown>,
      }
    })

    expect(frames.at(-1)).toBe('data: [DONE]')
    expect(events.map(({ name }) => name)).toEqual([
      'interaction.created',
      'interaction.status_update',
      ...['step.start', 'step.delta', 'step.stop', 'step.start', 'step.delta', 'step.stop'],
      'interaction.completed',
    ])
    for (const { name, data } of events) expect(data['event_type']).toBe(name)
    for (const at of [0, -1]) expect(events.at(at)?.data).toMatchObject({ interaction: { model: MODEL } })
    expect(events.at(-3)?.data).toMatchObject({ delta: { type: 'image', data: expect.stringMatching(/^[\w+/]{100}/) } })
  })
})

describe('the older API, which a host may choose', () => {
  test('the same request gets the same kind of answer, which cannot be continued', async () => {
    const sandbox = started.sandbox
    const generating = await startGateway({
      vendors: [gemini({ apiKey: 'vendor-key', images: 'generateContent' })],
      transport: sandbox.transport(),
    })
    const body = { model: MODEL, input: 'a crane', response_format: { type: 'image', image_size: '1K' } }

    const answer = await generating.post(IMAGES, body)
    const interaction = (await answer.json()) as Interaction
    const next = await generating.post(IMAGES, { ...body, previous_interaction_id: interaction.id })
    await generating.close()

    expect(answer.status).toBe(200)
    expect(sandbox.requests[0]?.path).toMatch(/:generateContent$/)
    expect(interaction).toMatchObject({ object: 'interaction', status: 'completed', model: MODEL })
    expect(interaction.id).toMatch(/^v1_/)
    expect(pictures(interaction)).toEqual([expect.objectContaining({ width: 1024, height: 1024 })])
    expect(next.status).toBe(404)
  })
})
