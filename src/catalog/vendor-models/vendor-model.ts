import type { AnyModelKind } from '../../core/model-kind.ts'
import type { ModelLimits } from '../model-facts.ts'

/** What a model reads or writes, as public catalogs name it. */
export const MODALITIES = ['text', 'image', 'audio', 'video', 'pdf'] as const

/** One of {@link MODALITIES}. */
export type Modality = (typeof MODALITIES)[number]

/** What a model can do, as public catalogs name it. */
export type Ability = 'reasoning' | 'tool_call' | 'structured_output' | 'temperature'

/** List prices in dollars for a million tokens, or a million characters where the model reads text and speaks; decimal strings. */
export interface ListPrice {
  readonly input?: string
  readonly output?: string
  readonly cachedInput?: string
  readonly cacheWrite?: string
  readonly reasoning?: string
  readonly inputAudio?: string
}

/** A list price for calls with more input tokens than `inputTokensAbove`. */
export interface ListPriceTier extends ListPrice {
  readonly inputTokensAbove: number
}

/** A model as its vendor names it, with what public catalogs know of it. */
export interface VendorModel {
  /** The vendor's own id. */
  readonly id: string
  readonly displayName: string
  readonly kinds: readonly AnyModelKind[]
  readonly limits: Pick<ModelLimits, 'contextTokens' | 'maxOutputTokens' | 'dimensions'>
  readonly inputModalities: readonly Modality[]
  readonly outputModalities: readonly Modality[]
  readonly abilities: readonly Ability[]
  /** Unix seconds of its release; 0: not known. */
  readonly created: number
  /** Unix seconds of the day on which its vendor ends it, if known. */
  readonly retires?: number
  /** Absent: not known. */
  readonly price?: ListPrice
  /** Prices of long prompts, by size. */
  readonly tiers: readonly ListPriceTier[]
  /** The wire protocol by which its vendor offers it, where that is not the usual one of its kind. */
  readonly protocol?: string
}

const PRICE_FIELDS = [
  'input',
  'output',
  'cachedInput',
  'cacheWrite',
  'reasoning',
  'inputAudio',
] as const satisfies readonly (keyof ListPrice)[]

const KIND_LETTERS: Readonly<Record<string, string>> = {
  chat: 'c',
  embedding: 'e',
  image: 'i',
  image_edit: 'm',
  speech: 's',
  video: 'v',
  transcription: 'a',
  rerank: 'r',
  moderation: 'o',
}

const MODALITY_LETTERS: Readonly<Record<Modality, string>> = { text: 't', image: 'i', audio: 'a', video: 'v', pdf: 'p' }

const ABILITY_LETTERS: Readonly<Record<Ability, string>> = {
  reasoning: 'r',
  tool_call: 'f',
  structured_output: 's',
  temperature: 't',
}

const DAY_SECONDS = 24 * 60 * 60

/**
 * Writes a model as one line:
 * `id|name|kinds|context|output or dimensions|input modalities|output modalities|abilities|release date|price;above:price…|protocol`,
 * a price being `input,output,cachedInput,cacheWrite,reasoning,inputAudio`, without empty fields at its end; without a protocol its
 * field is left out.
 */
export function writeVendorModel(model: VendorModel): string {
  const { limits } = model
  const prices = [
    ...(model.price === undefined ? [''] : [priceText(model.price)]),
    ...model.tiers.map((tier) => `${tier.inputTokensAbove}:${priceText(tier)}`),
  ]
  return [
    model.id,
    model.displayName === model.id ? '' : model.displayName.replaceAll('|', '/'),
    letters(KIND_LETTERS, model.kinds),
    limits.contextTokens ?? '',
    limits.maxOutputTokens ?? limits.dimensions ?? '',
    letters(MODALITY_LETTERS, model.inputModalities),
    letters(MODALITY_LETTERS, model.outputModalities),
    letters(ABILITY_LETTERS, model.abilities),
    model.created === 0 ? '' : new Date(model.created * 1000).toISOString().slice(0, 10).replaceAll('-', ''),
    prices.join(';'),
    ...(model.protocol === undefined ? [] : [model.protocol]),
  ].join('|')
}

/** Reads a line of {@link writeVendorModel}. */
export function readVendorModel(line: string): VendorModel {
  const [
    id = '',
    name = '',
    kinds = '',
    context = '',
    output = '',
    reads = '',
    writes = '',
    abilities = '',
    date = '',
    prices = '',
    protocol,
  ] = line.split('|')
  const [price = '', ...tiers] = prices.split(';')
  return {
    id,
    displayName: name === '' ? id : name,
    kinds: named(KIND_LETTERS, kinds),
    limits: {
      ...(context === '' ? {} : { contextTokens: Number(context) }),
      ...(output === ''
        ? {}
        : { [kinds === KIND_LETTERS['embedding'] ? 'dimensions' : 'maxOutputTokens']: Number(output) }),
    },
    inputModalities: named(MODALITY_LETTERS, reads),
    outputModalities: named(MODALITY_LETTERS, writes),
    abilities: named(ABILITY_LETTERS, abilities),
    created:
      date === '' ? 0 : Date.UTC(Number(date.slice(0, 4)), Number(date.slice(4, 6)) - 1, Number(date.slice(6))) / 1000,
    ...(price === '' ? {} : { price: priceOf(price) }),
    tiers: tiers.map((tier) => {
      const [above = '', text = ''] = tier.split(':')
      return { inputTokensAbove: Number(above), ...priceOf(text) }
    }),
    ...(protocol === undefined ? {} : { protocol }),
  }
}

/** Seconds of a date such as `2026-04-23`, or of its month or year alone; 0: no date. */
export function dateSeconds(date: string): number {
  const match = /^(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?$/.exec(date)
  if (match === null) return 0
  const [, year, month = '01', day = '01'] = match
  const seconds = Date.UTC(Number(year), Number(month) - 1, Number(day)) / 1000
  return Number.isFinite(seconds) && seconds % DAY_SECONDS === 0 ? seconds : 0
}

function letters<Word extends string>(table: Readonly<Record<Word, string>>, words: readonly Word[]): string {
  return words.map((word) => table[word]).join('')
}

/** The words of the letters, in the order of the table. */
function named<Word extends string>(table: Readonly<Record<Word, string>>, text: string): readonly Word[] {
  return (Object.keys(table) as Word[]).filter((word) => text.includes(table[word]))
}

function priceText(price: ListPrice): string {
  return PRICE_FIELDS.map((field) => price[field] ?? '')
    .join()
    .replace(/,+$/, '')
}

function priceOf(text: string): ListPrice {
  const amounts = text.split(',')
  return Object.fromEntries(
    PRICE_FIELDS.flatMap((field, index) => (amounts[index] ? [[field, amounts[index]]] : [])),
  ) as ListPrice
}
