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
import { AmountCell, Badge, ConfirmButton, Empty, Fault, Field, Form, Loaded, Section, Table } from '../parts.tsx'

/** Models that retire soon with their spend, the catalog with its routes, and prices. */
export function Models({ place }: { place: Place }) {
  const search = place.query.get('search') ?? undefined
  const fits = (id: string): boolean => search === undefined || id.toLowerCase().includes(search.toLowerCase())
  const models = useData<List<Model>>('models')
  const retiring = useData<List<RetiringModel>>('models/retiring')
  const prices = useData<List<Price> & { readonly billing: 'on' | 'off' }>('prices')
  return (
    <>
      <Form
        name="Search"
        button="Search"
        onSubmit={(values) => {
          location.hash = hrefOf(['models'], values)
        }}
      >
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
              <PriceTable rows={data.filter(({ model }) => fits(model))} />
            )
          }
        </Loaded>
      </Section>
    </>
  )
}

function RetiringTable({ rows }: { rows: readonly RetiringModel[] }) {
  if (rows.length === 0) return <Empty>No model that was called in the last 30 days retires within 60 days.</Empty>
  return (
    <Table name="Retiring models" head={['model', 'vendor', 'retires', ['requests, 30 days'], ['spend, 30 days']]}>
      {rows.map(({ id, vendor, retires, requests, charged }) => (
        <tr key={id}>
          <td>
            <a href={hrefOf(['requests'], { model: id })}>{id}</a>
          </td>
          <td>{vendor}</td>
          <td>
            <Badge kind={Date.parse(retires) <= Date.now() ? 'bad' : 'warn'}>{retires}</Badge>
          </td>
          <td class="number">{count(requests)}</td>
          <AmountCell of={charged} />
        </tr>
      ))}
    </Table>
  )
}

function ModelTable({ rows }: { rows: readonly Model[] }) {
  if (rows.length === 0) return <Empty>No id contains this text.</Empty>
  return (
    <Table
      name="Models"
      head={['model', 'kinds', 'state', 'routes', 'fallbacks', 'retires', ['context'], ['longest answer']]}
    >
      {rows.map((model) => (
        <tr key={model.id}>
          <td>{model.id}</td>
          <td>{model.kinds.join(', ')}</td>
          <td>
            {model.available ? (
              <Badge kind="good">available</Badge>
            ) : model.unavailable_reason === 'model_not_priced' ? (
              <Badge kind="bad">no price</Badge>
            ) : (
              <Badge kind="plain">no key</Badge>
            )}
          </td>
          <td>{model.routes.map(({ vendor, upstream }) => `${vendor}: ${upstream}`).join(', ')}</td>
          <td>{model.fallbacks.join(', ')}</td>
          <td>{model.retires}</td>
          <td class="number">{model.context_tokens?.toLocaleString('en-US')}</td>
          <td class="number">{model.max_output_tokens?.toLocaleString('en-US')}</td>
        </tr>
      ))}
    </Table>
  )
}

function PriceTable({ rows }: { rows: readonly Price[] }) {
  if (rows.length === 0)
    return <Empty>No model here has a price; calls of it are refused. Add a row to the price list.</Empty>
  return (
    <Table name="Prices" head={['model', 'when', 'meter', ['dollars']]}>
      {rows.flatMap((price) =>
        price.prices.map((row) => {
          const when = Object.entries(price.when).map(([field, value]) => `${field} ${value}`)
          if (row.input_tokens_above !== null) when.push(`above ${row.input_tokens_above} input tokens`)
          return (
            <tr key={`${price.model} ${row.meter} ${when.join()}`}>
              <td>{price.model}</td>
              <td>{when.join(', ')}</td>
              <td>{row.meter}</td>
              <td class="number">
                ${row.amount} {row.per === 1 ? 'each' : `for ${row.per.toLocaleString('en-US')}`}
              </td>
            </tr>
          )
        }),
      )}
    </Table>
  )
}

type Circuit = Vendor['keys'][number]['circuit']

export function circuitKind(circuit: Circuit): 'good' | 'bad' | 'warn' {
  if (circuit === 'closed') return 'good'
  return circuit === 'open' ? 'bad' : 'warn'
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
  const mayChange = may(session, 'write')
  return (
    <>
      <p class="note">
        As seen from the process that answers. A key with an open circuit is not used while others can answer.
      </p>
      <CatalogAge catalog={vendors.data?.catalog} />
      <Fault text={change.error} />
      <Loaded of={vendors}>
        {({ data }) => {
          const rows = data.flatMap((vendor) => vendor.keys.map((key) => ({ vendor, key })))
          if (rows.length === 0)
            return (
              <Empty>
                No vendor has a key. Set one, such as <code>OPENAI_API_KEY</code>, and restart the gateway.
              </Empty>
            )
          return (
            <Table
              name="Vendor keys"
              head={['vendor', 'key', 'circuit', ['failures'], ['in flight'], ['latency'], 'models not used', 'action']}
            >
              {rows.map(({ vendor, key }) => {
                const path = `vendor_keys/${encodeURIComponent(key.credential)}`
                return (
                  <tr key={key.credential}>
                    <td title={vendor.origin}>{vendor.id}</td>
                    <td>
                      <code>{key.credential.slice(vendor.id.length + 1)}</code>
                    </td>
                    <td>
                      <Badge kind={circuitKind(key.circuit)}>{key.circuit}</Badge>
                      {key.reason === null || key.circuit === 'closed' ? null : ` ${key.reason}`}
                      {key.open_until_ms === null ? null : ` until ${time(key.open_until_ms)}`}
                    </td>
                    <td class="number">{count(key.failures)}</td>
                    <td class="number">{count(key.in_flight)}</td>
                    <td class="number">{duration(key.latency_ms)}</td>
                    <td>{key.open_models.join(', ')}</td>
                    <td>
                      {!mayChange ? null : key.circuit === 'closed' ? (
                        <ConfirmButton
                          label="Eject"
                          question={`Leave this key of ${vendor.id} alone for an hour?`}
                          onConfirm={() => change.run('POST', `${path}/eject`)}
                        />
                      ) : (
                        <button type="button" class="small" onClick={() => change.run('POST', `${path}/restore`)}>
                          Restore<span class="hidden"> {key.credential}</span>
                        </button>
                      )}
                    </td>
                  </tr>
                )
              })}
            </Table>
          )
        }}
      </Loaded>
    </>
  )
}
