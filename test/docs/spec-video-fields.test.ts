import { expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import { BUILT_IN_MODELS } from '../../src/catalog/models/built-in-models.ts'
import { GatewayError } from '../../src/core/errors.ts'
import { parseVideoRequest } from '../../src/endpoints/videos/video-endpoint.ts'
import { VIDEO_PROTOCOLS } from '../../src/endpoints/videos/video-protocols.ts'
import { fieldTable, type Verdict, verdictOf } from './support/field-table.ts'

const HEADING = 'Input and parameters by family'
const PICTURE = 'https://cdn.example.net/anna.png'
const catalog = createCatalog(BUILT_IN_MODELS)

/** A body of each family with nothing but what its model requires. */
const BODIES = {
  '2.7 t2v': { model: 'wv2.7-t2v', input: { prompt: 'a boat' } },
  '2.7 i2v': { model: 'wv2.7-i2v', input: { media: [{ type: 'first_frame', url: PICTURE }] } },
  '2.7 r2v': { model: 'wv2.7-r2v', input: { prompt: 'a boat', media: [{ type: 'reference_image', url: PICTURE }] } },
  '2.6 t2v': { model: 'wv2.6-t2v', input: { prompt: 'a boat' } },
  '2.6 i2v': { model: 'wv2.6-i2v', input: { img_url: PICTURE } },
  '2.6 r2v': { model: 'wv2.6-r2v', input: { prompt: 'a boat', reference_urls: [PICTURE] } },
} as const

type Family = keyof typeof BODIES

/** Value of each field that agrees with the defaults; `media` depends on the family. */
const VALUES: Readonly<Record<string, unknown>> = {
  'input.prompt': 'a boat',
  'input.media': [{ type: 'first_frame', url: PICTURE }],
  'input.img_url': PICTURE,
  'input.audio_url': 'https://cdn.example.net/sea.mp3',
  'input.reference_urls': [PICTURE],
  'parameters.resolution': '720P',
  'parameters.ratio': '16:9',
  'parameters.size': '1280*720',
  'parameters.duration': 5,
  'parameters.prompt_extend': true,
  'parameters.watermark': false,
  'parameters.audio': true,
  'parameters.shot_type': 'multi',
}

/** Returns the treatment of a field, from requests with and without it. */
function fate(family: Family, path: string): Verdict {
  const { model: id, input } = BODIES[family]
  const model = catalog.find(id)!
  const protocol = VIDEO_PROTOCOLS.get(model.protocol ?? '')!
  const [part, name = ''] = path.split('.')
  const sent = (value: Record<string, unknown>) => {
    const body =
      part === 'input' ? { model: id, input: { ...value, ...input } } : { model: id, input, parameters: value }
    const request = parseVideoRequest(body, model)
    return part === 'input' ? request.input : protocol.fillIn(request, model)
  }
  if (Object.hasOwn(sent({}), name) && part === 'parameters') {
    expect(sent({ [name]: VALUES[path] })[name], `${path} of ${family}`).toEqual(VALUES[path])
    return 'filled in'
  }
  try {
    return Object.hasOwn(sent({ [name]: VALUES[path] }), name) ? 'passed' : 'dropped'
  } catch (error) {
    if (GatewayError.isInstance(error) && error.param === path) return 'refused'
    throw error
  }
}

test('the table has a column for each family and a row for each field of the specification', () => {
  const table = fieldTable(HEADING)

  expect([...table.fields]).toEqual(Object.keys(VALUES))
  for (const family of Object.keys(BODIES)) expect(table.column(family).size).toBe(table.fields.length)
})

test.each(Object.keys(BODIES) as Family[])('the column of %s is what the gateway does', (family) => {
  const column = fieldTable(HEADING).column(family)

  const fates = Object.keys(VALUES).map((path) => [path, fate(family, path)])

  expect([...column].map(([path, cell]) => [path, verdictOf(cell)])).toEqual(fates)
})
