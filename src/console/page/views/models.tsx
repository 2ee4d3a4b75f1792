import type { List, Model, Price, RetiringModel } from '../answers.ts'
import { count } from '../format.ts'
import { hrefOf, type Place } from '../location.ts'
import { AmountCell, Badge, Empty, Field, Form, Loaded, Section, Table } from '../parts.tsx'
import { useData } from '../use-data.ts'

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
