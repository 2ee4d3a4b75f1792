import { type AnyModelKind, KIND_FACTS, MODEL_KINDS } from '../../core/model-kind.ts'
import type { ModelLimits } from '../model-facts.ts'

/** Letters of the input and output modalities of models, as named by public catalogs. */
const MODALITY_LETTERS = { text: 't', image: 'i', audio: 'a', video: 'v', pdf: 'p' } as const

/** Input or output modality of a model. */
export type Modality = keyof typeof MODALITY_LETTERS

export const MODALITIES = Object.keys(MODALITY_LETTERS) as [Modality, ...Modality[]]

/** Letters of the abilities of models, as named by public catalogs. */
const ABILITY_LETTERS = { reasoning: 'r', tool_call: 'f', structured_output: 's', temperature: 't' } as const

/** Ability of a model. */
export type Ability = keyof typeof ABILITY_LETTERS

export const ABILITIES = Object.keys(ABILITY_LETTERS) as [Ability, ...Ability[]]

/** Letters of the reasoning efforts, from least to most; `none` turns reasoning off. */
const EFFORT_LETTERS = { none: 'n', minimal: 'i', low: 'l', medium: 'm', high: 'h', xhigh: 'x', max: 'a' } as const

type Effort = keyof typeof EFFORT_LETTERS

/** Reasoning efforts, from least to most. */
export const EFFORTS = Object.keys(EFFORT_LETTERS) as [Effort, ...Effort[]]

/** Fields of a list price, in the order of a line. */
const PRICE_FIELDS = [
  ...([
    'input',
    'output',
    'cachedInput',
    'cacheWrite',
    'reasoning',
    'inputAudio',
    'inputImage',
    'outputImage',
  ] as const),
  // Dollars per hour of input audio.
  'audioHour',
  // Price of all output of a call in which the model thinks, at vendors that price output by mode.
  'thinkingOutput',
] as const

/**
 * List prices as decimal strings, in dollars per million tokens. If the model converts text to speech and has no price of
 * `output`, per million characters.
 */
export type ListPrice = { readonly [Field in (typeof PRICE_FIELDS)[number]]?: string }

/** List price for calls with more input tokens than `inputTokensAbove`. */
export interface ListPriceTier extends ListPrice {
  readonly inputTokensAbove: number
}

/** List price that applies from a day on, in Unix seconds. */
interface LaterListPrice extends ListPrice {
  readonly from: number
}

/** Model under its vendor's own id, with facts of public catalogs. */
export interface VendorModel {
  /** The vendor's own id. */
  readonly id: string
  readonly displayName: string
  readonly kinds: readonly AnyModelKind[]
  readonly limits: Pick<ModelLimits, 'contextTokens' | 'maxOutputTokens' | 'dimensions'>
  readonly inputModalities: readonly Modality[]
  readonly outputModalities: readonly Modality[]
  readonly abilities: readonly Ability[]
  /** Members of {@link EFFORTS} that it accepts; absent if they are not known. */
  readonly efforts?: readonly string[]
  /** Time of release in Unix seconds; 0 if it is not known. */
  readonly created: number
  /** List price; undefined if it is not known. */
  readonly price?: ListPrice
  /** Prices of long prompts, by size. */
  readonly tiers: readonly ListPriceTier[]
  /** Wire protocol at its vendor, if it differs from the usual one of its kind. */
  readonly protocol?: string
  /** Day on which its vendor retires it, in Unix seconds; undefined if no day is known. */
  readonly retires?: number
  /** Prices of calls in the vendor's own batches; undefined if they are not known. */
  readonly batchPrice?: ListPrice
  /** Prices of long prompts in batches, by size. */
  readonly batchTiers?: readonly ListPriceTier[]
  /** Price after an introductory one. Replaces all others. */
  readonly laterPrice?: LaterListPrice
  /** Letter of the snapshot's `sources` that this comes from. */
  readonly source?: string
}

/** Returns the efforts that a model accepts: none if it does not reason, `undefined` if its efforts are not known. */
export function effortsOf({ efforts = [], abilities }: VendorModel): readonly string[] | undefined {
  if (efforts.length > 0) return efforts
  return abilities.length > 0 && !abilities.includes('reasoning') ? [] : undefined
}

const KIND_LETTERS: Readonly<Record<string, string>> = Object.fromEntries(
  MODEL_KINDS.map((kind) => [kind, KIND_FACTS[kind].letter]),
)

const DAY_SECONDS = 24 * 60 * 60

/** Field of a line: its text, and the members that a text encodes; `known` has the members of the fields before it. */
interface LineField {
  readonly write: (model: VendorModel) => string | number | undefined
  readonly read: (text: string, known: Partial<VendorModel>) => Partial<VendorModel>
}

const NOTHING = {
  kinds: [],
  limits: {},
  inputModalities: [],
  outputModalities: [],
  abilities: [],
  created: 0,
  tiers: [],
}

/** Fields of a line in their order. Empty fields are not parsed. */
const FIELDS: readonly LineField[] = [
  { write: ({ id }) => id, read: (id) => ({ ...NOTHING, id, displayName: id }) },
  member('displayName', ({ id, displayName }) => (displayName === id ? '' : displayName.replaceAll('|', '/')), String),
  listed('kinds', KIND_LETTERS),
  { write: ({ limits }) => limits.contextTokens, read: (text) => ({ limits: { contextTokens: Number(text) } }) },
  {
    write: ({ limits }) => limits.maxOutputTokens ?? limits.dimensions,
    read: (text, { kinds, limits }) => ({
      limits: { ...limits, [kinds?.[0] === 'embedding' ? 'dimensions' : 'maxOutputTokens']: Number(text) },
    }),
  },
  listed('inputModalities', MODALITY_LETTERS),
  listed('outputModalities', MODALITY_LETTERS),
  listed('abilities', ABILITY_LETTERS),
  member('created', ({ created }) => dayText(created), secondsOf),
  { write: ({ price, tiers }) => pricesText(price, tiers), read: pricesOf },
  member('protocol', ({ protocol }) => protocol, String),
  listed('efforts', EFFORT_LETTERS),
  member('retires', ({ retires }) => dayText(retires), secondsOf),
  {
    write: ({ batchPrice, batchTiers = [] }) => pricesText(batchPrice, batchTiers),
    read: (text) => {
      const { price = {}, tiers } = pricesOf(text)
      return { batchPrice: price, batchTiers: tiers }
    },
  },
  member(
    'laterPrice',
    ({ laterPrice: later }) => later && `${dayText(later.from)}:${priceText(later)}`,
    (text) => ({ from: secondsOf(text.slice(0, 8)), ...priceOf(text.slice(9)) }),
  ),
  member('source', ({ source }) => source, String),
]

function member<Name extends keyof VendorModel>(
  name: Name,
  write: LineField['write'],
  read: (text: string) => VendorModel[Name],
): LineField {
  return { write, read: (text) => ({ [name]: read(text) }) }
}

/** Creates a field with a letter for each word. */
function listed(
  name: 'kinds' | 'inputModalities' | 'outputModalities' | 'abilities' | 'efforts',
  table: Readonly<Record<string, string>>,
): LineField {
  return { write: (model) => letters(table, model[name] ?? []), read: (text) => ({ [name]: named(table, text) }) }
}

/**
 * Formats a model as one line:
 * `id|name|kinds|context|output or dimensions|input modalities|output modalities|abilities|release date|price;above:price…|protocol|
 * efforts|retirement date|batch price;above:price…|day:later price|source`, without empty fields at its end. A price is
 * `input,output,cachedInput,cacheWrite,reasoning,inputAudio,inputImage,outputImage,audioHour,thinkingOutput`, likewise.
 */
export function writeVendorModel(model: VendorModel): string {
  return FIELDS.map(({ write }) => write(model) ?? '')
    .join('|')
    .replace(/\|+$/, '')
}

/** Parses a line of {@link writeVendorModel}. */
export function readVendorModel(line: string): VendorModel {
  const texts = line.split('|')
  const model: Partial<VendorModel> = {}
  for (const [index, text] of texts.entries()) if (text !== '') Object.assign(model, FIELDS[index]?.read(text, model))
  return model as VendorModel
}

/** Returns the Unix seconds of a date such as `2026-04-23`, or of its month or year; 0 without a date. */
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

/** Returns the words of the letters, in the order of the table. */
function named<Word extends string>(table: Readonly<Record<Word, string>>, text: string): readonly Word[] {
  return (Object.keys(table) as Word[]).filter((word) => text.includes(table[word]))
}

/** Formats a day as `20260423`, or `''` if there is none. */
function dayText(seconds = 0): string {
  return seconds === 0 ? '' : new Date(seconds * 1000).toISOString().slice(0, 10).replaceAll('-', '')
}

function secondsOf(day: string): number {
  return Date.UTC(Number(day.slice(0, 4)), Number(day.slice(4, 6)) - 1, Number(day.slice(6))) / 1000
}

function pricesText(price: ListPrice = {}, tiers: readonly ListPriceTier[]): string {
  return [priceText(price), ...tiers.map((tier) => `${tier.inputTokensAbove}:${priceText(tier)}`)].join(';')
}

function pricesOf(text: string): Pick<VendorModel, 'price' | 'tiers'> {
  const [price = '', ...tiers] = text.split(';')
  return {
    ...(price === '' ? {} : { price: priceOf(price) }),
    tiers: tiers.map((tier) => {
      const [above = '', amounts = ''] = tier.split(':')
      return { inputTokensAbove: Number(above), ...priceOf(amounts) }
    }),
  }
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
