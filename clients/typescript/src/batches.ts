// Transactions and batches of Sawtooth, with the bytes and ids that its SDKs make.
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { sha512 } from "@noble/hashes/sha2.js";
import { bytesToHex, hexToBytes, randomBytes } from "@noble/hashes/utils.js";
import { encodeMessage } from "./protobuf.js";

/** Signs with a secret key of secp256k1. */
export class Signer {
  readonly #secretKey: Uint8Array;
  /** The public key, compressed, in hexadecimal. */
  readonly publicKey: string;

  /** The secret key is 32 bytes, or 64 hexadecimal digits as in a key file of Sawtooth. */
  constructor(secretKey: Uint8Array | string) {
    this.#secretKey = typeof secretKey === "string" ? hexToBytes(secretKey.trim()) : Uint8Array.from(secretKey);
    this.publicKey = bytesToHex(secp256k1.getPublicKey(this.#secretKey, true));
  }

  /** A signer with a new key, which is lost with it. */
  static random(): Signer {
    return new Signer(secp256k1.utils.randomSecretKey());
  }

  /** The compact signature of the SHA-256 of the bytes, with a low s, in hexadecimal. */
  sign(bytes: Uint8Array): string {
    return bytesToHex(secp256k1.sign(bytes, this.#secretKey));
  }
}

/** What a transaction consists of. */
export interface TransactionFields {
  familyName: string;
  familyVersion: string;
  payload: Uint8Array;
  /** The addresses that the transaction reads and writes, or prefixes of them. */
  inputs?: readonly string[];
  outputs?: readonly string[];
  /** The ids of transactions that come first. */
  dependencies?: readonly string[];
  /** By default random, so that two transactions with the same payload differ. */
  nonce?: string;
  /** Who signs the batch, if not the signer of the transaction. */
  batcherPublicKey?: string;
}

/** A signed transaction; its id is its signature. */
export interface SignedTransaction {
  id: string;
  bytes: Uint8Array;
}

/** A signed batch; its id is its signature. */
export interface SignedBatch {
  id: string;
  transactionIds: string[];
  bytes: Uint8Array;
}

/** Signs a transaction. */
export function makeTransaction(signer: Signer, fields: TransactionFields): SignedTransaction {
  const { payload, nonce = bytesToHex(randomBytes(16)) } = fields;
  const header = encodeMessage([
    [1, fields.batcherPublicKey ?? signer.publicKey],
    [2, fields.dependencies ?? []],
    [3, fields.familyName],
    [4, fields.familyVersion],
    [5, fields.inputs ?? []],
    [6, nonce],
    [7, fields.outputs ?? []],
    [9, bytesToHex(sha512(payload))],
    [10, signer.publicKey],
  ]);
  const id = signer.sign(header);
  return { id, bytes: encodeMessage([[1, header], [2, id], [3, payload]]) };
}

/** Signs a batch of transactions, which name this signer as the one of their batch. */
export function makeBatch(
  signer: Signer,
  transactions: readonly SignedTransaction[],
  { trace = false }: { trace?: boolean } = {},
): SignedBatch {
  const transactionIds = transactions.map((transaction) => transaction.id);
  const header = encodeMessage([[1, signer.publicKey], [2, transactionIds]]);
  const id = signer.sign(header);
  const list = transactions.map((transaction) => transaction.bytes);
  return { id, transactionIds, bytes: encodeMessage([[1, header], [2, id], [3, list], [4, trace]]) };
}

/** The list of batches that a request has as its body. */
export function encodeBatches(batches: readonly SignedBatch[]): Uint8Array {
  return encodeMessage([[1, batches.map((batch) => batch.bytes)]]);
}
