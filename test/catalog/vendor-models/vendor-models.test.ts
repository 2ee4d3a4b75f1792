import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { MAX_UNKNOWN_MODELS, type ModelVendor, VendorModels } from '../../../src/catalog/vendor-models/vendor-models.ts'

const chat = new Map([['chat', undefined]])
const all = new Map([
  ['chat', undefined],
  ['embedding', undefined],
  ['image', 'generations'],
  ['image_edit', undefined],
])

function vendor(id: string, given: Partial<ModelVendor> = {}): ModelVendor {
  return { id, isConfigured: true, kinds: all, passUnknownModels: false, ...given }
}

describe('models without rows', () => {
  test('are found by the bare id and by the id with the vendor, as one model', () => {
    const models = new VendorModels([vendor('openai')])

    expect(models.find('gpt-4o')).toMatchObject({ id: 'gpt-4o', vendor: 'openai', upstream: 'gpt-4o', kinds: ['chat'] })
    expect(models.find('openai/gpt-4o')).toBe(models.find('gpt-4o'))
    expect(models.find('gpt-99')).toBeUndefined()
    expect(models.find('openai/')).toBeUndefined()
  })

  test('have only the kinds that their vendor serves here, and the protocol of its images', () => {
    const models = new VendorModels([vendor('openai', { kinds: chat })])

    expect(models.find('text-embedding-3-small')).toBeUndefined()
    expect(models.find('whisper-1')).toBeUndefined()
    expect(new VendorModels([vendor('openai')]).find('gpt-image-2')).toMatchObject({
      kinds: ['image', 'image_edit'],
      protocol: 'generations',
    })
  })

  test('gives image models the abilities of their family, also outside the snapshot', () => {
    const google = vendor('gemini', { kinds: new Map([['image', 'interactions']]) })
    const models = new VendorModels([vendor('openai'), google])

    expect(models.find('gpt-image-1.5')?.image).toMatchObject({ takesMask: true, maxImages: 10 })
    expect(models.find('gpt-image-1.5')?.image?.freeSize).toBeUndefined()
    expect(models.find('gpt-image-2-2026-04-21')?.image?.freeSize?.multipleOf).toBe(16)
    expect(models.find('gpt-image-2-2026-04-21')?.image?.qualities).not.toContain('max')
    expect(models.find('gpt-image-9')?.image?.qualities).toContain('max')
    expect(models.find('openai/gpt-image-9')).toMatchObject({ upstream: 'gpt-image-9', kinds: ['image', 'image_edit'] })
    expect(models.find('dall-e-3')).toMatchObject({ kinds: ['image'], protocol: 'generations' })
    expect(models.find('gemini-9-flash-image')).toMatchObject({ kinds: ['image'], protocol: 'interactions' })
    expect(models.find('gemini-3-pro-image')?.image?.sizes).toEqual(['1K', '2K', '4K'])
    expect(models.find('gpt-image-x')).toBeUndefined()
    expect(models.list().every(({ isOpen }) => isOpen === undefined)).toBe(true)
  })

  test('sends an image model without a row to the maker of its family only, in the shape of the family', () => {
    const relay = vendor('relay', { passUnknownModels: true })
    const azure = vendor('azure', { catalogIds: () => ['gpt-image-1.5'] })

    expect(new VendorModels([vendor('together')]).find('gpt-image-9')).toBeUndefined()
    expect(new VendorModels([relay]).find('gpt-image-9')?.image).toBeUndefined()
    expect(new VendorModels([azure]).find('my-deployment')?.image?.takesMask).toBe(true)
    const other = vendor('openai', { kinds: new Map([['image', 'interactions']]) })
    expect(new VendorModels([other]).find('gpt-image-9')?.image).toBeUndefined()
  })

  test('belong to the first vendor with a key if two share an id; the other is named with its vendor', () => {
    const models = new VendorModels([
      vendor('idle', { catalogId: 'openai', isConfigured: false }),
      vendor('first', { catalogId: 'openai' }),
      vendor('second', { catalogId: 'openai' }),
    ])

    expect(models.find('gpt-4o')?.vendor).toBe('first')
    expect(models.find('second/gpt-4o')).toMatchObject({ id: 'second/gpt-4o', vendor: 'second', upstream: 'gpt-4o' })
    expect(models.find('idle/gpt-4o')?.vendor).toBe('idle')
    const ids = models.list().map(({ id }) => id)
    expect(ids).toContain('gpt-4o')
    expect(ids).toContain('second/gpt-4o')
    expect(ids).not.toContain('idle/gpt-4o')
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('go to the vendor that passes unknown ids, up to a length, and are limited', () => {
    const models = new VendorModels([vendor('openai'), vendor('local', { passUnknownModels: true, kinds: chat })])

    expect(models.find('llama-of-mine')).toMatchObject({ vendor: 'local', upstream: 'llama-of-mine', isOpen: true })
    expect(models.find('local/llama:8b')).toMatchObject({ id: 'local/llama:8b', upstream: 'llama:8b' })
    expect(models.find('openai/unknown')).toMatchObject({ vendor: 'local', upstream: 'openai/unknown' })
    for (const odd of ['', 'with space', 'x'.repeat(201), 'é', 'line\nbreak']) expect(models.find(odd)).toBeUndefined()
    for (const odd of ['..', 'local/..', 'local/../files', 'a/../../b', './a', 'local/a/.'])
      expect(models.find(odd)).toBeUndefined()
    expect(models.find('local/a..b/.c')).toMatchObject({ upstream: 'a..b/.c' })
    const first = models.find('model-0')
    for (let index = 0; index <= MAX_UNKNOWN_MODELS; index++) models.find(`model-${index}`)
    expect(models.find('model-0')).not.toBe(first)
    expect(models.list().some(({ isOpen }) => isOpen === true)).toBe(false)
  })
})

describe('claims of vendors', () => {
  const openai = vendor('openai', { claims: ['gpt-*', 'text-embedding-*', 'ft:*'] })
  const dashscope = vendor('dashscope', { claims: ['qwen*', 'text-embedding-v*'], kinds: chat })
  const idle = vendor('idle', { claims: ['gpt-*'], isConfigured: false, kinds: chat })

  test.each([
    ['gpt-7-nova', 'openai'],
    ['openai/gpt-7-nova', 'openai'],
    ['ft:gpt-4o:acme::7', 'openai'],
    ['text-embedding-v9', 'dashscope'],
    ['qwen9-max', 'dashscope'],
    ['gpt-oss:20b', undefined],
    ['gpt-x/other', undefined],
    ['idle/gpt-7-nova', 'idle'],
  ])('send %s to %s in either order', (id, expected) => {
    for (const vendors of [
      [idle, openai, dashscope],
      [dashscope, openai, idle],
    ])
      expect(new VendorModels(vendors).find(id)?.vendor).toBe(expected)
  })

  test('give an id the kinds and the protocol of its family, and all kinds without one', () => {
    const models = new VendorModels([openai])

    expect(models.find('gpt-7-nova')?.kinds).toEqual(['chat'])
    expect(models.find('gpt-image-9')).toMatchObject({ kinds: ['image', 'image_edit'], protocol: 'generations' })
    expect(models.find('text-embedding-9-large')?.kinds).toEqual(['embedding'])
    // A tuned model costs more than the one that it is made from.
    expect(models.find('ft:gpt-4o:acme::7')?.family).toEqual([])
    expect(new VendorModels([vendor('own', { claims: ['own-*'] })]).find('own-1')).toMatchObject({
      kinds: [...all.keys()],
      family: [],
    })
  })

  test('are ignored where unknown ids are refused', () => {
    expect(new VendorModels([openai], { refusesUnknown: true }).find('gpt-7-nova')).toBeUndefined()
  })
})

describe('a catalog with models without rows', () => {
  const source = new VendorModels([vendor('openai')])

  test('prefers its rows, finds them by vendor and upstream, and lists every model once', () => {
    const catalog = createCatalog(
      [{ id: 'my-4o', kind: 'chat', vendor: 'openai', upstream: 'gpt-4o', aliases: ['gpt-4o'] }],
      source,
    )

    expect(catalog.find('gpt-4o')?.id).toBe('my-4o')
    expect(catalog.find('openai/gpt-4o')?.id).toBe('my-4o')
    expect(catalog.find('gpt-4o-mini')?.id).toBe('gpt-4o-mini')
    const ids = catalog.list().map(({ id }) => id)
    expect(ids).toContain('my-4o')
    expect(ids).not.toContain('gpt-4o')
    expect(ids).toContain('gpt-4o-mini')
  })

  test('takes them as fallbacks of rows', () => {
    const row = { id: 'mine', kind: 'chat', vendor: 'openai' } as const

    expect(createCatalog([{ ...row, fallbacks: ['gpt-4o'] }], source).find('mine')?.fallbacks).toEqual(['gpt-4o'])
    expect(() => createCatalog([{ ...row, fallbacks: ['gpt-99'] }], source)).toThrow('is not in the catalog')
  })
})

describe('a row whose id is a pattern', () => {
  const catalog = createCatalog([
    { id: 'corp/*', kind: 'chat', vendor: 'openai', upstream: '*' },
    {
      id: 'corp/fast-*',
      kind: 'chat',
      vendor: 'groq',
      upstream: 'llama-*-instant',
      routes: [{ vendor: 'groq', upstream: '*-a' }],
    },
    { id: 'corp/fast-known', kind: 'chat', vendor: 'anthropic' },
  ])

  test('stands for every id that matches; rows of their own and more specific patterns come first', () => {
    expect(catalog.find('corp/gpt-4o')).toMatchObject({
      id: 'corp/gpt-4o',
      vendor: 'openai',
      upstream: 'gpt-4o',
      isOpen: true,
    })
    expect(catalog.find('corp/fast-8b')).toMatchObject({
      vendor: 'groq',
      upstream: 'llama-8b-instant',
      routes: [{ vendor: 'groq', upstream: '8b-a' }],
    })
    expect(catalog.find('corp/fast-known')?.vendor).toBe('anthropic')
    expect(catalog.find('corp/gpt-4o')).toBe(catalog.find('corp/gpt-4o'))
    expect(catalog.find('corp/')).toBeUndefined()
    expect(catalog.find('other/gpt-4o')).toBeUndefined()
  })

  test('never stands for an id that leads elsewhere in the path of a vendor', () => {
    for (const star of ['..', '.', '../files', 'a/../../b', 'a/.']) expect(catalog.find(`corp/${star}`)).toBeUndefined()
    expect(catalog.find('corp/a..b/.c')).toMatchObject({ upstream: 'a..b/.c' })
  })

  test('is not listed, puts what the star stood for in as it is, and has one star', () => {
    expect(catalog.list().map(({ id }) => id)).toEqual(['corp/fast-known'])
    expect(catalog.find('corp/$&$1')?.upstream).toBe('$&$1')
    expect(() => createCatalog([{ id: '*/*', kind: 'chat', vendor: 'openai' }])).toThrow('may have one star only')
  })
})
