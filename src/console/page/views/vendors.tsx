import type { Session, Vendor, VendorList } from '../answers.ts'
import { count, duration, time } from '../format.ts'
import { Badge, ConfirmButton, Empty, Fault, Loaded, Table } from '../parts.tsx'
import { may } from '../session.ts'
import { useChange, useData } from '../use-data.ts'

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
                    <td class="number">
                      {count(key.in_flight)} of {count(vendor.limit)}
                    </td>
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
