import {
  type List,
  type Model,
  type Price,
  type RetiringModel,
  type Session,
  useChange,
  useData,
  type Vendor,
  type VendorList,
} from '../api.ts'
import { count, duration, hrefOf, may, type Place, time } from '../format.ts'
import {
  Amount,
  Badge,
  type Column,
  ConfirmButton,
  Empty,
  Fault,
  Field,
  Form,
  Loaded,
  openView,
  Section,
  SmallButton,
  Table,
} from '../parts.tsx'

/** Models that retire soon with their spend, the catalog with its routes, and prices. */
export function Models({ place }: { place: Place }) {
  const search = place.query.get('search') ?? undefined
  const fits = (id: string): boolean => search === undefined || id.toLowerCase().includes(search.toLowerCase())
  const models = useData<List<Model>>('models')
  const retiring = useData<List<RetiringModel>>('models/retiring')
  const prices = useData<List<Price> & { readonly billing: 'on' | 'off' }>('prices')
  return (
    <>
      <Form name="Search" button="Search" onSubmit={openView('models')}>
        <Field key={search} name="search" label="Id contains" value={search} />
      </Form>
      <Section title="Retiring models">
        <Loaded of={retiring}>{({ data }) => <RetiringTable rows={data.filter(({ id }) => fits(id))} />}</Loaded>
      </Section>
      <Section title="Models">
        <Loaded of={models}>{({ data }) => <ModelTable rows={data.filter(({ id }) => fits(id))} />}</Loaded>
      </Section>
      <Section title="Prices">
        <Loaded of={prices}>
          {({ data, billing }) =>
            billing === 'off' ? (
              <Empty>
                Billing is off. Give <code>createGateway</code> prices, or set <code>SIGNALBOX_LIST_PRICES=1</code>, to
                charge for calls.
              </Empty>
            ) : (
              <PriceTable prices={data.filter(({ model }) => fits(model))} />
            )
          }
        </Loaded>
      </Section>
    </>
  )
}

function RetiringTable({ rows }: { rows: readonly RetiringModel[] }) {
  if (rows.length === 0) return <Empty>No model that was called in the last 30 days retires within 60 days.</Empty>
  return <Table name="Retiring models" columns={RETIRING_COLUMNS} rows={rows} />
}

const RETIRING_COLUMNS: readonly Column<RetiringModel>[] = [
  ['model', ({ id }) => <a href={hrefOf(['requests'], { model: id })}>{id}</a>],
  ['vendor', ({ vendor }) => vendor],
  ['retires', ({ retires }) => <Badge kind={Date.parse(retires) <= Date.now() ? 'bad' : 'warn'}>{retires}</Badge>],
  ['requests, 30 days', ({ requests }) => count(requests), 'number'],
  ['spend, 30 days', ({ charged }) => <Amount of={charged} />, 'number'],
]

function ModelTable({ rows }: { rows: readonly Model[] }) {
  if (rows.length === 0) return <Empty>No id contains this text.</Empty>
  return <Table name="Models" columns={MODEL_COLUMNS} rows={rows} />
}

const MODEL_COLUMNS: readonly Column<Model>[] = [
  ['model', ({ id }) => id],
  ['kinds', ({ kinds }) => kinds.join(', ')],
  ['state', (model) => <ModelState of={model} />],
  ['routes', ({ routes }) => routes.map(({ vendor, upstream }) => `${vendor}: ${upstream}`).join(', ')],
  ['fallbacks', ({ fallbacks }) => fallbacks.join(', ')],
  ['retires', ({ retires }) => retires],
  ['context', (model) => model.context_tokens?.toLocaleString('en-US'), 'number'],
  ['longest answer', (model) => model.max_output_tokens?.toLocaleString('en-US'), 'number'],
]

function ModelState({ of: { available, unavailable_reason: reason } }: { of: Model }) {
  if (available) return <Badge kind="good">available</Badge>
  return reason === 'model_not_priced' ? <Badge kind="bad">no price</Badge> : <Badge kind="plain">no key</Badge>
}

function PriceTable({ prices }: { prices: readonly Price[] }) {
  if (prices.length === 0)
    return <Empty>No model here has a price; calls of it are refused. Add a row to the price list.</Empty>
  const rows = prices.flatMap(({ model, when, prices }) =>
    prices.map((row) => {
      const conditions = Object.entries(when).map(([field, value]) => `${field} ${value}`)
      if (row.input_tokens_above !== null) conditions.push(`above ${row.input_tokens_above} input tokens`)
      return { ...row, model, when: conditions.join(', '), id: `${model} ${row.meter} ${conditions.join()}` }
    }),
  )
  return (
    <Table
      name="Prices"
      columns={[
        ['model', ({ model }) => model],
        ['when', ({ when }) => when],
        ['meter', ({ meter }) => meter],
        ['dollars', ({ amount, per }) => `$${amount} ${per === 1 ? 'each' : `for ${count(per)}`}`, 'number'],
      ]}
      rows={rows}
    />
  )
}

type VendorKey = Vendor['keys'][number]

const CIRCUIT_KINDS = { closed: 'good', 'half-open': 'warn', open: 'bad' } as const

/** State of the circuit of a vendor key. */
export function CircuitBadge({ circuit }: Pick<VendorKey, 'circuit'>) {
  return <Badge kind={CIRCUIT_KINDS[circuit]}>{circuit}</Badge>
}

/** Warns of a catalog that is old, or that no newer one can replace. */
export function CatalogAge({ catalog }: { catalog: VendorList['catalog'] | undefined }) {
  if (catalog === undefined || !(catalog.is_old || catalog.error !== null)) return null
  return (
    <p>
      <Badge kind="warn">catalog</Badge> Models and list prices are of {catalog.date}, {count(catalog.age_days)} days
      ago. {catalog.error === null ? 'Update signalbox, or load a newer catalog.' : `Not loaded: ${catalog.error}`}
    </p>
  )
}

/** Shows the operator's keys at the vendors, from the view of the answering process. */
export function Vendors({ session }: { session: Session }) {
  const vendors = useData<VendorList>('vendors', true)
  const change = useChange<Vendor>(() => vendors.reload())
  const actionOf = ({ id, vendor, circuit }: VendorKeyRow) => {
    const path = `vendor_keys/${encodeURIComponent(id)}`
    if (!may(session, 'write')) return null
    return circuit === 'closed' ? (
      <ConfirmButton
        label="Eject"
        question={`Leave this key of ${vendor.id} alone for an hour?`}
        onConfirm={() => change.run('POST', `${path}/eject`)}
      />
    ) : (
      <SmallButton onClick={() => change.run('POST', `${path}/restore`)}>
        Restore<span class="hidden"> {id}</span>
      </SmallButton>
    )
  }
  return (
    <>
      <p class="note">
        As seen from the process that answers. A key with an open circuit is not used while others can answer.
      </p>
      <CatalogAge catalog={vendors.data?.catalog} />
      <Fault text={change.error} />
      <Loaded of={vendors}>
        {({ data }) => {
          const rows = data.flatMap((vendor) => vendor.keys.map((key) => ({ ...key, id: key.credential, vendor })))
          return rows.length === 0 ? (
            <Empty>
              No vendor has a key. Set one, such as <code>OPENAI_API_KEY</code>, and restart the gateway.
            </Empty>
          ) : (
            <Table name="Vendor keys" columns={[...VENDOR_KEY_COLUMNS, ['action', actionOf]]} rows={rows} />
          )
        }}
      </Loaded>
    </>
  )
}

type VendorKeyRow = VendorKey & { readonly id: string; readonly vendor: Vendor }

const VENDOR_KEY_COLUMNS: readonly Column<VendorKeyRow>[] = [
  ['vendor', ({ vendor }) => <span title={vendor.origin}>{vendor.id}</span>],
  ['key', ({ id, vendor }) => <code>{id.slice(vendor.id.length + 1)}</code>],
  [
    'circuit',
    ({ circuit, reason, open_until_ms: openUntilMs }) => (
      <>
        <CircuitBadge circuit={circuit} />
        {reason === null || circuit === 'closed' ? null : ` ${reason}`}
        {openUntilMs === null ? null : ` until ${time(openUntilMs)}`}
      </>
    ),
  ],
  ['failures', ({ failures }) => count(failures), 'number'],
  ['in flight', (key) => count(key.in_flight), 'number'],
  ['latency', (key) => duration(key.latency_ms), 'number'],
  ['models not used', (key) => key.open_models.join(', ')],
]
