import { generateKeyPairSync, sign } from 'node:crypto'

/** A key and a certificate that nobody trusts, in PEM. */
export interface SelfSignedCertificate {
  readonly key: string
  readonly cert: string
}

// Object identifiers in DER: commonName (RFC 5280, appendix A.1), ecdsa-with-SHA256 (RFC 5758, section 3.2).
const COMMON_NAME = der(0x06, Buffer.from([0x55, 0x04, 0x03]))
const ECDSA_WITH_SHA256 = der(0x06, Buffer.from([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]))

/** Makes a certificate for a name, signed by its own fresh key (RFC 5280, section 4.1; version 1, without extensions). */
export function selfSignedCertificate(commonName: string): SelfSignedCertificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const name = sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from(commonName)))))
  const validity = sequence(der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from('491231235959Z')))
  const algorithm = sequence(ECDSA_WITH_SHA256)
  const serial = der(0x02, Buffer.from([1]))
  const subjectKey = publicKey.export({ type: 'spki', format: 'der' })
  const content = sequence(serial, algorithm, name, validity, name, subjectKey)
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', content, privateKey)]))
  const certificate = sequence(content, algorithm, signature).toString('base64')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----\n`,
  }
}

function sequence(...members: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(members))
}

/** One value: tag, length, content. */
function der(tag: number, content: Buffer): Buffer {
  const { byteLength } = content
  const length = byteLength < 128 ? [byteLength] : [0x82, byteLength >> 8, byteLength & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}
