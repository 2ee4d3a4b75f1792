import { describe, expect, it } from 'vitest'
import { createCatalog, type ModelSource } from '../../src/catalog/catalog.ts'
import { defineModel, type ModelDefinition } from '../../src/catalog/model.ts'

function chatModel(id: string, overrides: Partial<ModelDefinition> = {}): ModelDefinition {
  return { id, kind: 'chat', vendor: 'openai', ...overrides }
}

describe('createCatalog', () => {
  it('finds a model by its id and by each alias, and gives the same row', () => {
    const catalog = createCatalog([chatModel('gp-5', { upstream: 'gpt-5', aliases: ['gpt-5', 'five'] })])

    expect(catalog.find('gp-5')).toMatchObject({ id: 'gp-5', upstream: 'gpt-5', kinds: ['chat'] })
    expect(catalog.find('gpt-5')).toBe(catalog.find('gp-5'))
    expect(catalog.find('five')).toBe(catalog.find('gp-5'))
  })

  it.each(['gp-6', '', 'GP-5', 'constructor', '__proto__', 'toString'])('does not know %j', (id) => {
    expect(createCatalog([chatModel('gp-5')]).find(id)).toBeUndefined()
  })

  it('takes rows that defineModel has completed as well as bare ones', () => {
    const row = defineModel(chatModel('gp-5'))

    expect(createCatalog([row]).find('gp-5')).toBe(row)
  })

  it('lets the last row of an id win, in the place of the first', () => {
    const catalog = createCatalog([
      chatModel('gp-5', { limits: { maxOutputTokens: 100 }, aliases: ['old'] }),
      chatModel('gp-6'),
      chatModel('gp-5', { vendor: 'elsewhere', upstream: 'served-by-me' }),
    ])

    expect(catalog.list().map((model) => model.id)).toEqual(['gp-5', 'gp-6'])
    expect(catalog.find('gp-5')).toMatchObject({ vendor: 'elsewhere', upstream: 'served-by-me', limits: {} })
    expect(catalog.find('old')).toBeUndefined()
  })

  it('keeps the protocol of a row that is overridden for the same vendor only', () => {
    const first = chatModel('wv2.7-t2v', { kind: 'video', vendor: 'dashscope', protocol: 'wan-2-7' })
    const protocolAfter = (override: Partial<ModelDefinition>) =>
      createCatalog([first, { ...first, protocol: undefined, ...override }]).find('wv2.7-t2v')?.protocol

    expect(protocolAfter({ upstream: 'wan2.7-t2v-2026-06-12' })).toBe('wan-2-7')
    expect(protocolAfter({ protocol: 'wan-2-6' })).toBe('wan-2-6')
    expect(protocolAfter({ vendor: 'elsewhere' })).toBeUndefined()
  })

  it('refuses an alias that two models claim, naming both', () => {
    const rows = [chatModel('gp-5', { aliases: ['five'] }), chatModel('gp-6', { aliases: ['five'] })]

    expect(() => createCatalog(rows)).toThrow('model "gp-6": the alias "five" is also an alias of "gp-5"')
  })

  it('refuses an alias that is the id of an earlier model', () => {
    const rows = [chatModel('gp-5'), chatModel('gp-6', { aliases: ['gp-5'] })]

    expect(() => createCatalog(rows)).toThrow('model "gp-6": the alias "gp-5" is the id of another model')
  })

  it('lets a later model take over the alias of an earlier one as its id', () => {
    const catalog = createCatalog([chatModel('gp-5', { aliases: ['gpt-5'] }), chatModel('gpt-5', { vendor: 'mine' })])

    expect(catalog.find('gpt-5')?.vendor).toBe('mine')
    expect(catalog.find('gp-5')?.vendor).toBe('openai')
  })

  it.each([
    ['gp-9', 'is not in the catalog'],
    ['gp-5', 'is the model itself'],
    ['vy-4', 'serves none of its kinds'],
  ])('refuses the fallback %s: it %s', (fallback, fault) => {
    const rows = [chatModel('gp-5', { fallbacks: [fallback] }), chatModel('vy-4', { kind: 'embedding' })]

    expect(() => createCatalog(rows)).toThrow(`model "gp-5": the fallback ${JSON.stringify(fallback)} ${fault}`)
  })

  it.each(['embedding', 'rerank'] as const)('rejects a fallback to another %s model and names the remedy', (kind) => {
    const rows = [
      chatModel('first', { kind, upstream: 'vy-1', fallbacks: ['second'] }),
      chatModel('second', { kind, upstream: 'vy-2' }),
    ]

    expect(() => createCatalog(rows)).toThrow(
      `model "first": the fallback "second" is another ${kind} model, whose results cannot be compared; list other vendors of the model in routes`,
    )
  })

  it.each(['embedding', 'rerank'] as const)('accepts a fallback to the same %s model at another vendor', (kind) => {
    const routes = [
      { vendor: 'one', upstream: 'bge-m3' },
      { vendor: 'two', upstream: 'baai/bge-m3' },
    ]
    const rows = [
      chatModel('first', { kind, upstream: 'BAAI/bge-m3', fallbacks: ['second', 'third'] }),
      chatModel('second', { kind, upstream: 'bge-m3', vendor: 'mine' }),
      chatModel('third', { kind, routes }),
    ]

    expect(createCatalog(rows).find('first')?.fallbacks).toEqual(['second', 'third'])
  })

  it('accepts fallbacks by id and by alias, to each other too', () => {
    const rows = [
      chatModel('gp-5', { fallbacks: ['six'] }),
      chatModel('gp-6', { aliases: ['six'], fallbacks: ['gp-5'] }),
    ]

    expect(createCatalog(rows).find('gp-5')?.fallbacks).toEqual(['six'])
  })
})

describe('models of vendors without rows', () => {
  const offered = [chatModel('five', { vendor: 'cloud' }), chatModel('six', { vendor: 'cloud' })].map((row) =>
    defineModel(row),
  )
  const sourceWith = (...configured: string[]): ModelSource => ({
    find: (name) => offered.find(({ id, vendor, upstream }) => name === id || name === `${vendor}/${upstream}`),
    list: () => offered,
    isConfigured: (vendorId) => configured.includes(vendorId),
  })
  const row = chatModel('gp-5', { vendor: 'maker', upstream: 'five', aliases: ['five'] })

  it.each([
    [['maker', 'cloud'], 'gp-5'],
    [['cloud'], 'five'],
    [[], 'gp-5'],
  ])('resolves an alias of a row with keys for %j to %s', (configured, id) => {
    expect(createCatalog([row], sourceWith(...configured)).find('five')?.id).toBe(id)
  })

  it('are found and listed by their vendor where a row has their id', () => {
    const catalog = createCatalog([row], sourceWith('maker', 'cloud'))

    expect(catalog.find('cloud/five')).toMatchObject({
      id: 'cloud/five',
      vendor: 'cloud',
      upstream: 'five',
      aliases: [],
    })
    expect(catalog.find('cloud/five')).toBe(catalog.find('cloud/five'))
    expect(catalog.find('cloud/six')?.id).toBe('six')
    expect(catalog.list().map(({ id }) => id)).toEqual(['gp-5', 'cloud/five', 'six'])
  })

  it('never take the id of a row, nor an alias of one whose routes lead elsewhere', () => {
    const routed = { ...row, routes: [{ vendor: 'cloud' }] }

    expect(createCatalog([chatModel('five')], sourceWith('cloud')).find('five')?.vendor).toBe('openai')
    expect(createCatalog([routed], sourceWith('cloud')).find('five')?.id).toBe('gp-5')
  })
})
