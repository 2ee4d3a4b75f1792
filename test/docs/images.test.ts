import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import type { CatalogModel } from '../../src/catalog/model.ts'
import { DASHSCOPE_IMAGE_MODELS } from '../../src/catalog/models/dashscope-models.ts'
import { GEMINI_IMAGE_MODELS } from '../../src/catalog/models/gemini-models.ts'
import { imageFamilyOf } from '../../src/catalog/models/image-families.ts'
import { OPENAI_IMAGE_MODELS } from '../../src/catalog/models/openai-models.ts'
import { imageEditEndpoint, MAX_PICTURE_SIDE } from '../../src/endpoints/image-edits/image-edit-endpoint.ts'
import {
  INTERACTION_RETENTION_MS,
  interactionImageEndpoint,
  multimodalImageEndpoint,
  openaiImageEndpoint,
} from '../../src/endpoints/images/images-endpoint.ts'
import { DEFAULT_FORM_LIMITS } from '../../src/wire/form.ts'
import { editBody, generation, interaction, multimodal } from '../gateway/images/image-requests.ts'
import { codeBlocks, firstTable, readPage, section } from './support/markdown.ts'

const page = readPage('docs/images.md')
const catalog = createCatalog([...DASHSCOPE_IMAGE_MODELS, ...GEMINI_IMAGE_MODELS, ...OPENAI_IMAGE_MODELS])
const models = catalog.list()

const SHAPES: Readonly<Record<string, string>> = {
  multimodal: 'multimodal',
  interactions: 'interactions',
  generations: "OpenAI's",
}

function rangeOf({ min, max }: { min: number; max: number }): string {
  if (max === 0) return 'none'
  return min === max ? String(max) : `${min} to ${max}`
}

function rowOf({ id, upstream, protocol = '', kinds, image }: CatalogModel): string[] {
  const routes = kinds.map((kind) => (kind === 'image' ? 'generations' : 'edits'))
  const given = image?.referenceImages
  return [
    id,
    upstream,
    SHAPES[protocol] ?? protocol,
    routes.join(', '),
    given === undefined ? '' : rangeOf(given),
    rangeOf({ min: 1, max: image?.maxImages ?? 1 }),
    image?.takesMask === true ? 'yes' : 'no',
  ]
}

function coded(names: readonly string[] | undefined): string {
  return names === undefined ? '' : names.join(', ')
}

/** The cells of a table without the marks of code. */
function tableOf(heading: string): string[][] {
  const [, ...rows] = firstTable(section(page, heading))
  return rows.map((row) => row.map((cell) => cell.replaceAll('`', '')))
}

test('the page lists the models of the catalog, and what each takes', () => {
  expect(tableOf('Models')).toEqual(models.map(rowOf))
})

test('the page lists their sizes and ratios', () => {
  expect(tableOf('Sizes')).toEqual(
    models.map(({ id, image }) => [
      id,
      image?.sizes === undefined ? 'none: it keeps that of the image' : coded(image.sizes),
      image?.defaultSize ?? 'that of the last image',
      image?.aspectRatios === undefined ? '' : coded(image.aspectRatios),
    ]),
  )
})

test('the page names models without a row by ids of their families', () => {
  const names = tableOf('Models without a row').flatMap(([ids = '']) => ids.split(', '))
  const ids = names.filter((name) => /^[\w.-]+$/.test(name))

  expect(ids).toHaveLength(14)
  expect(ids.filter((id) => imageFamilyOf(id) === undefined)).toEqual([])
})

test('the page states the rule for free sizes, and who has one', () => {
  const text = section(page, 'Sizes')
  const free = models.filter(({ image }) => image?.freeSize !== undefined)

  expect(free.map(({ id }) => id)).toEqual(['gp-image-2'])
  const { multipleOf, maxSide, maxRatio, maxPixels } = free[0]!.image!.freeSize!
  expect(text).toContain(`multiples of ${multipleOf}, no side is longer than ${maxSide}`)
  expect(text).toContain(`at most ${maxRatio} times`)
  expect(text).toContain(`at most ${maxPixels} pixels`)
})

test('the page lists the limits of forms', () => {
  expect(tableOf('Limits of forms')).toEqual(
    [
      ['parts', DEFAULT_FORM_LIMITS.parts],
      ['text fields', DEFAULT_FORM_LIMITS.fields],
      ['files', DEFAULT_FORM_LIMITS.files],
      ['bytes of one text field', DEFAULT_FORM_LIMITS.fieldBytes],
      ['bytes of one name', DEFAULT_FORM_LIMITS.nameBytes],
      ['bytes of the headers of one part', DEFAULT_FORM_LIMITS.headerBytes],
    ].map((row) => row.map(String)),
  )
  expect(section(page, 'Limits of forms')).toContain(`more than ${MAX_PICTURE_SIDE} pixels`)
})

test('the page says how long conversations are kept', () => {
  const days = (ms: number): string => (ms === 86_400_000 ? '1 day' : `${ms / 86_400_000} days`)

  expect(tableOf('Conversations')).toEqual(
    Object.entries(INTERACTION_RETENTION_MS).map(([tier, ms]) => [tier, days(ms)]),
  )
})

describe('the page names the fields that prices can depend on', () => {
  const rows = tableOf('What an image costs')
  const fieldsOf = {
    multimodal: () => multimodalImageEndpoint.priceFields!(multimodal('x') as never, model('qw-image-2.0')),
    interactions: () =>
      interactionImageEndpoint.priceFields!(
        interaction('x', { response_format: { type: 'image', aspect_ratio: '1:1' } }) as never,
        model('gmn-3.1-flash-image-preview'),
      ),
    "OpenAI's": () =>
      openaiImageEndpoint.priceFields!(
        generation('x', { size: '1024x1024', quality: 'hd' }) as never,
        model('gp-image-2'),
      ),
    edits: () => imageEditEndpoint.priceFields!(editBody('x', { size: 'auto', quality: 'hd' }) as never, model('de-2')),
  }

  test('names them for every shape', () => {
    expect(rows.map(([shape]) => shape)).toEqual(Object.keys(fieldsOf))
  })

  test.each(Object.entries(fieldsOf))('%s', (shape, fields) => {
    const [, names, example = ''] = rows.find(([name]) => name === shape) ?? []
    const billed = fields()

    expect(names).toBe(Object.keys(billed).join(', '))
    expect(JSON.parse(example)).toEqual(billed)
  })
})

function model(id: string): CatalogModel {
  const found = catalog.find(id)
  if (found === undefined) throw new Error(`there is no model ${id}`)
  return found
}

test('every model that an example calls exists', () => {
  const called = codeBlocks(page).flatMap(({ code }) => [...code.matchAll(/"?model"?: ['"]([^'"]+)['"]/g)])

  expect(called.length).toBeGreaterThan(5)
  expect(called.map(([, id = '']) => id).filter((id) => catalog.find(id) === undefined)).toEqual([])
})
